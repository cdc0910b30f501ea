package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Variables that configure a test binary.
const (
	envMutant  = "AUTHMOUNT_MUTANT"         // the mutant to run
	envReached = "AUTHMOUNT_MUTANT_REACHED" // the file for the ids of reached mutants
)

// helper is added to each package that has mutants.
const helper = `package %s

import (
	"os"
	"strconv"
	"sync"
)

var (
	mutantID, _     = strconv.Atoi(os.Getenv("` + envMutant + `"))
	mutantNotes     = os.Getenv("` + envReached + `")
	mutantsReached  sync.Map
)

func mutantOn(id int) bool { return id == mutantID }

func mutantReached(id int) {
	if mutantNotes == "" {
		return
	}
	if _, seen := mutantsReached.LoadOrStore(id, true); seen {
		return
	}
	f, err := os.OpenFile(mutantNotes, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	if _, err := f.WriteString(strconv.Itoa(id) + "\n"); err != nil {
		panic(err)
	}
	_ = f.Close()
}
`

// moduleRoot returns the folder of the mutated module, from this module's replace
// directive.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/authmount/auth").Output()
	return strings.TrimSpace(string(out)), err
}

// workshop builds mutants and runs tests.
type workshop struct {
	root string
	tmp  string
	jobs int
	out  io.Writer

	tests *regexp.Regexp // only tests that match
	skip  *regexp.Regexp // except tests that match
}

func newWorkshop(root string, jobs int, out io.Writer) (*workshop, error) {
	tmp, err := os.MkdirTemp("", "mutants")
	return &workshop{root: root, tmp: tmp, jobs: max(jobs, 1), out: out, tests: regexp.MustCompile(""), skip: regexp.MustCompile("^$")}, err
}

func (w *workshop) close() { _ = os.RemoveAll(w.tmp) }

// sample returns the first n mutants of the pool that compile.
func (w *workshop) sample(ctx context.Context, pool []*mutant, n int) ([]*mutant, error) {
	if n <= 0 || n > len(pool) {
		n = len(pool)
	}
	chosen, rest := slices.Clone(pool[:n]), pool[n:]
	for i, m := range pool {
		m.id = i + 1
	}
	for {
		broken, err := w.broken(ctx, chosen)
		if err != nil || len(broken) == 0 {
			return chosen, err
		}
		chosen = slices.DeleteFunc(chosen, func(m *mutant) bool { return broken[m] })
		for len(chosen) < n && len(rest) > 0 {
			chosen, rest = append(chosen, rest[0]), rest[1:]
		}
	}
}

// broken returns the mutants that do not compile.
func (w *workshop) broken(ctx context.Context, ms []*mutant) (map[*mutant]bool, error) {
	broken := map[*mutant]bool{}
	together := slices.DeleteFunc(slices.Clone(ms), func(m *mutant) bool { return m.alone })
	overlay, places, err := w.overlay("check", together)
	if err != nil {
		return nil, err
	}
	args := append([]string{"build", "-gcflags=-e", "-overlay", overlay}, packages(together)...)
	if out, err := w.goTool(ctx, args...); err != nil {
		for _, at := range compileError.FindAllStringSubmatch(out, -1) {
			line, _ := strconv.Atoi(at[2])
			file := at[1]
			if _, in, ok := strings.Cut(file, filepath.Base(w.tmp)+"/check/"); ok { // the overlay's copy; the path may be relative
				file = in
			}
			for _, p := range places {
				if p.file == path.Clean(file) && line >= p.first && line <= p.last {
					broken[p.m] = true
				}
			}
		}
		if len(broken) == 0 {
			return nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
		return broken, nil
	}
	for _, m := range ms {
		if !m.alone {
			continue
		}
		overlay, err := w.overlayAlone(m)
		if err != nil {
			return nil, err
		}
		if _, err := w.goTool(ctx, "build", "-overlay", overlay, "./"+m.dir()); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			broken[m] = true
		}
	}
	return broken, nil
}

var compileError = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):`)

// goTool runs the go command in the module's root.
func (w *workshop) goTool(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // that is what this is for
	cmd.Dir = w.root
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return string(out), err
}

// packages returns the folders of mutants.
func packages(ms []*mutant) []string {
	var dirs []string
	for _, m := range ms {
		dirs = append(dirs, "./"+m.dir())
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// lines is the position of a mutant in an overlay's file.
type lines struct {
	m           *mutant
	file        string
	first, last int
}

// overlay writes the files with mutants next to the original code.
func (w *workshop) overlay(name string, ms []*mutant) (string, []lines, error) {
	byFile := map[string][]*mutant{}
	for _, m := range ms {
		byFile[m.file] = append(byFile[m.file], m)
	}
	dir := filepath.Join(w.tmp, name)
	replace := map[string]string{}
	var places []lines
	for file, ms := range byFile {
		raw, err := os.ReadFile(filepath.Join(w.root, filepath.FromSlash(file)))
		if err != nil {
			return "", nil, err
		}
		text, at := weave(string(raw), ms)
		places = append(places, at...)
		pkg := packageClause.FindStringSubmatch(string(raw))
		if pkg == nil {
			return "", nil, errors.New("no package clause in " + file)
		}
		helperFile := path.Join(path.Dir(file), "mutants_switch.go")
		for name, text := range map[string]string{file: text, helperFile: fmt.Sprintf(helper, pkg[1])} {
			to := filepath.Join(dir, filepath.FromSlash(name))
			if err := write(to, text); err != nil {
				return "", nil, err
			}
			replace[filepath.Join(w.root, filepath.FromSlash(name))] = to
		}
	}
	overlay, err := w.writeOverlay(dir, replace)
	return overlay, places, err
}

var packageClause = regexp.MustCompile(`(?m)^package (\w+)`)

// overlayAlone writes an overlay in which one mutant replaces the original code.
func (w *workshop) overlayAlone(m *mutant) (string, error) {
	raw, err := os.ReadFile(filepath.Join(w.root, filepath.FromSlash(m.file)))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(w.tmp, "alone", strconv.Itoa(m.id))
	to := filepath.Join(dir, filepath.Base(m.file))
	if err := write(to, string(raw[:m.start])+m.text+string(raw[m.end:])); err != nil {
		return "", err
	}
	return w.writeOverlay(dir, map[string]string{filepath.Join(w.root, filepath.FromSlash(m.file)): to})
}

func (w *workshop) writeOverlay(dir string, replace map[string]string) (string, error) {
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, write(file, string(raw))
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600) //nolint:gosec // below a directory of our own
}

// weave adds mutants to a file. Each is a copy of its function's body at the start of the
// function, which runs if the mutant is selected. In the original body, the mutant's
// statement records that it was reached.
func weave(text string, ms []*mutant) (string, []lines) {
	slices.SortFunc(ms, func(a, b *mutant) int { return a.open - b.open })
	var out strings.Builder
	var places []lines
	done := 0
	for i := 0; i < len(ms); {
		same := i
		for same < len(ms) && ms[same].open == ms[i].open {
			same++
		}
		group := ms[i:same]
		open, shut := group[0].open, group[0].shut
		out.WriteString(text[done:open])
		for _, m := range group {
			first := 1 + strings.Count(out.String(), "\n")
			end := "panic(\"the end of a function\")"
			if m.void {
				end = "return"
			}
			fmt.Fprintf(&out, "\nif mutantOn(%d) {\n%s\n%s\n}\n", m.id, text[open:m.start]+m.text+text[m.end:shut], end)
			places = append(places, lines{m, m.file, first, strings.Count(out.String(), "\n")})
		}
		slices.SortStableFunc(group, func(a, b *mutant) int { return a.mark - b.mark })
		done = open
		for _, m := range group {
			out.WriteString(text[done:m.mark])
			fmt.Fprintf(&out, "mutantReached(%d); ", m.id)
			done = m.mark
		}
		out.WriteString(text[done:shut])
		done = shut
		i = same
	}
	out.WriteString(text[done:])
	return out.String(), places
}
