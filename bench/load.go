package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// process is a server in a separate process.
type process struct {
	addr  string
	cmd   *exec.Cmd
	stdin io.Closer
}

// start runs a build of this tool as a server; an empty binary is this one.
func start(binary string, args ...string) (*process, error) {
	if binary == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		binary = self
	}
	cmd := exec.Command(binary, args...) //nolint:gosec,noctx // ourselves, or what the caller named; ends when stdin does
	cmd.Stderr = os.Stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, err
	}
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = stdin.Close()
		return nil, errors.Join(fmt.Errorf("the server %v did not start: %w", args, err), cmd.Wait())
	}
	return &process{addr: strings.TrimSpace(addr), cmd: cmd, stdin: stdin}, nil
}

func (p *process) stop() {
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
}

// get makes a request outside the measurement.
func (p *process) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.addr+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %s", path, res.Status, body)
	}
	return body, err
}

// worker is one client: it writes requests and checks the responses.
type worker interface {
	next(to []byte) []byte // appends a request
	got(body []byte) error
}

// client is a keep-alive connection. It does little work, because it shares the
// processors with the server.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	req  []byte
	body []byte
}

func dial(ctx context.Context, addr string) (*client, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReader(conn)}, nil
}

// ask makes one request. The response's body is valid until the next request.
func (c *client) ask(w worker) ([]byte, error) {
	c.req = w.next(c.req[:0])
	body, err := c.send()
	if err != nil {
		return nil, err
	}
	return body, w.got(body)
}

// send sends the request in req and returns the response's body.
func (c *client) send() ([]byte, error) {
	if _, err := c.conn.Write(c.req); err != nil {
		return nil, err
	}
	status, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	ok, said := bytes.HasPrefix(status, []byte("HTTP/1.1 200")), ""
	if !ok {
		said = string(status)
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); string(name) == "Content-Length" {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return nil, err
			}
		}
	}
	if length < 0 {
		return nil, errors.New("a response without a length")
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	if _, err := io.ReadFull(c.in, c.body); err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%s %s", said, c.body)
	}
	return c.body, nil
}

// drive keeps every worker busy for d and returns the number of requests.
func drive[W worker](ctx context.Context, addr string, workers []W, d time.Duration) (int, error) {
	end := time.Now().Add(d)
	counts, errs := make([]int, len(workers)), make([]error, len(workers))
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() {
			c, err := dial(ctx, addr)
			if err != nil {
				errs[i] = err
				return
			}
			defer func() { _ = c.conn.Close() }()
			for time.Now().Before(end) && ctx.Err() == nil {
				if _, errs[i] = c.ask(w); errs[i] != nil {
					return
				}
				counts[i]++
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return total, errors.Join(append(errs, ctx.Err())...)
}

// tick is the unit of CPU times in /proc on Linux.
const tick = 10 * time.Millisecond

// stat returns a process's parent and CPU time, with dead children if requested.
func stat(pid string, children bool) (parent string, cpu time.Duration, err error) {
	raw, err := os.ReadFile(filepath.Join("/proc", pid, "stat")) //nolint:gosec // a number
	if err != nil {
		return "", 0, err
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // the name may contain anything
	f := strings.Fields(rest)
	if len(f) < 15 {
		return "", 0, fmt.Errorf("/proc/%s/stat has an unexpected format", pid)
	}
	times := f[11:13]
	if children {
		times = f[11:15]
	}
	for _, t := range times {
		n, err := strconv.Atoi(t)
		if err != nil {
			return "", 0, err
		}
		cpu += time.Duration(n) * tick
	}
	return f[1], cpu, nil
}

// cpuOf returns the CPU time of a process.
func cpuOf(pid string) (time.Duration, error) {
	_, cpu, err := stat(pid, false)
	return cpu, err
}

// cpuOfFamily returns the CPU time of a process and all its children, dead or alive.
func cpuOfFamily(pid string) (time.Duration, error) {
	if pid == "" {
		return 0, nil
	}
	_, total, err := stat(pid, true)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		if parent, cpu, err := stat(e.Name(), false); err == nil && parent == pid { // other processes start and stop
			total += cpu
		}
	}
	return total, nil
}
