package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// chart is a stacked bar chart over time, one bar part a label. A table has the same
// numbers for screen readers.
type chart struct {
	Name  string
	Lines []line
	Times []time.Time // start times of the bars
	Hours bool        // a bar is an hour, not a day
	Table *table
	Empty string
}

// line is one series of a chart.
type line struct {
	Name  string
	At    map[time.Time]int64
	Class string // CSS class of its colour
	Total int64
}

// Sizes of a chart, in its own units: it is scaled to the width of the page.
const (
	chartWidth, chartHeight = 720, 180
	chartLeft, chartBottom  = 44, 20
	maxLines                = 6 // further series are summed up as one
)

// chart draws a metric of the statistics.
func (v *visit) chart(name, kind, metric string, stats object) *chart {
	c := &chart{Name: v.t(name), Empty: v.t("Nothing in this period.")}
	times := instants(stats.time("from"), stats.time("to"), stats.str("interval"))
	c.Lines = v.mergeLines(series(stats, metric), kind)
	if len(c.Lines) == 0 || len(times) == 0 {
		return c
	}
	c.Times, c.Hours = times, stats.str("interval") == "hour"
	c.Table = &table{Name: c.Name, Columns: []column{{Text: v.t("From")}}}
	for _, l := range c.Lines {
		c.Table.Columns = append(c.Table.Columns, column{Text: l.Name})
	}
	for _, t := range slices.Backward(times) {
		r := row{Cells: []cell{{Time: t}}}
		for _, l := range c.Lines {
			r.Cells = append(r.Cells, cell{Text: thousands(l.At[t])})
		}
		c.Table.Rows = append(c.Table.Rows, r)
	}
	return c
}

// instants returns the start times of all intervals of a span.
func instants(from, to time.Time, interval string) []time.Time {
	step := 24 * time.Hour
	if interval == "hour" {
		step = time.Hour
	}
	var list []time.Time
	for t := from.UTC().Truncate(step); t.Before(to) && len(list) < 24*100; t = t.Add(step) {
		list = append(list, t)
	}
	return list
}

// mergeLines sorts series by their sums, merges those beyond the last colour, and names
// them. A name has the same colour everywhere.
func (v *visit) mergeLines(lines []line, kind string) []line {
	for i := range lines {
		for _, n := range lines[i].At {
			lines[i].Total += n
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Name, b.Name)) })
	if len(lines) > maxLines {
		rest := line{Name: v.t("Others"), At: map[time.Time]int64{}}
		for _, l := range lines[maxLines-1:] {
			rest.Total += l.Total
			for t, n := range l.At {
				rest.At[t] += n
			}
		}
		lines = append(lines[:maxLines-1:maxLines-1], rest)
	}
	used := map[string]bool{}
	for i := range lines {
		lines[i].Class = colourOf(lines[i].Name, kind, used)
		lines[i].Name = v.t(lines[i].Name)
	}
	return lines
}

// known are the labels with a fixed colour.
var known = map[string]string{"password": "c1", "magic_link": "c2", "otp": "c3", "oauth": "c4", "google": "c4", "phone": "c5", "invalid_credentials": "c6", "user_banned": "c3", "rate_limited": "c5"}

func colourOf(name, kind string, used map[string]bool) string {
	first := known[name]
	for _, c := range []string{first, map[string]string{"bad": "c6", "good": "c2"}[kind], "c1", "c2", "c3", "c4", "c5", "c6"} {
		if c != "" && !used[c] {
			used[c] = true
			return c
		}
	}
	return "c1"
}

// nice returns a round number that is not below n.
func nice(n int64) float64 {
	size := 1.0
	for size*10 < float64(n) {
		size *= 10
	}
	for _, by := range []float64{1, 2, 4, 5, 10} {
		if size*by >= float64(n) {
			return max(2, size*by)
		}
	}
	return size * 10
}

// short returns a number in few characters.
func short(n float64) string {
	for _, u := range []struct {
		size float64
		text string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= u.size {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", n/u.size), ".0") + u.text
		}
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
}

// ticks selects the bars of n that have their time below.
func ticks(n int) []int {
	switch {
	case n <= 1:
		return []int{0}
	case n <= 6:
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	return []int{0, n / 4, n / 2, n * 3 / 4, n - 1}
}
