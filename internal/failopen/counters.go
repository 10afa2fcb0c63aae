// SPDX-License-Identifier: Apache-2.0

package failopen

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	failOpenMetric  = "apiserver_admission_webhook_fail_open_count"
	startTimeMetric = "process_start_time_seconds"
	// ownSuffix ends the names of our webhooks.
	ownSuffix = ".plumbline.dev"
	// maxLine bounds one line of the API server's metrics.
	maxLine = 1 << 20
	// maxInstances bounds how many API servers are told apart.
	maxInstances = 64
	// forgetAfter is when an API server that was not met again is forgotten.
	forgetAfter = 24 * time.Hour
)

// Reading is what one API server says about calls that it went on without.
type Reading struct {
	// Started is when that API server started, in its own words (seconds since
	// 1970 with a fraction). It tells the API servers behind one address apart.
	Started string
	// Count of such calls of our webhooks since then.
	Count float64
}

// ParseReading reads the API server's metrics in the text format, line by line.
// It fails on a broken stream and when the answer names no start time, since
// then it cannot be told which API server it was.
func ParseReading(r io.Reader) (Reading, error) {
	var reading Reading
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, startTimeMetric+" "):
			reading.Started = strings.TrimSpace(line[len(startTimeMetric):])
		case strings.HasPrefix(line, failOpenMetric+"{"):
			n, err := ownCount(line)
			if err != nil {
				return Reading{}, err
			}
			reading.Count += n
		}
	}
	if err := lines.Err(); err != nil {
		return Reading{}, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	if reading.Started == "" {
		return Reading{}, fmt.Errorf("reading the API server's metrics: no %s", startTimeMetric)
	}
	return reading, nil
}

// ownCount is the value of a sample of one of our webhooks, 0 of others'.
func ownCount(line string) (float64, error) {
	end := strings.LastIndexByte(line, '}')
	if end < 0 {
		return 0, fmt.Errorf("reading the API server's metrics: %q is no sample", cut(line))
	}
	labels := line[len(failOpenMetric)+1 : end]
	_, rest, named := strings.Cut(labels, `name="`)
	name, _, closed := strings.Cut(rest, `"`)
	if !named || !closed || !strings.HasSuffix(name, ownSuffix) {
		return 0, nil
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) == 0 {
		return 0, fmt.Errorf("reading the API server's metrics: %q has no value", cut(line))
	}
	n, err := strconv.ParseFloat(fields[0], 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("reading the API server's metrics: %w", err)
	case math.IsNaN(n), math.IsInf(n, 0), n < 0:
		return 0, fmt.Errorf("reading the API server's metrics: %q has no count", cut(line))
	}
	return n, nil
}

func cut(line string) string { return line[:min(len(line), 120)] }

// Counters compares readings of the same API server. The zero value has none;
// Began must be set to when looking began.
type Counters struct {
	Began time.Time
	seen  map[string]counted
}

type counted struct {
	at    time.Time
	count float64
}

// Observe takes a reading. more is how many calls went unanswered since the
// reading before of the same API server, within the window. An API server that
// is met for the first time answers for the time since looking began or since
// its own start, whichever is later: what was before, the first look at all
// objects has covered.
func (c *Counters) Observe(at time.Time, r Reading) (window *Window, more float64) {
	before, known := c.seen[r.Started]
	if !known {
		before.at = c.Began
		if started := startOf(r.Started); started.After(before.at) {
			before.at = started
		}
		if len(c.seen) == 0 { // what it had counted before anybody looked
			before.count = r.Count
		}
	}
	c.remember(at, r)
	if more = r.Count - before.count; more <= 0 {
		return nil, 0
	}
	return &Window{Evidence: EvidenceAPIServer, From: before.at, To: at}, more
}

func (c *Counters) remember(at time.Time, r Reading) {
	if c.seen == nil {
		c.seen = map[string]counted{}
	}
	c.seen[r.Started] = counted{at, r.Count}
	for len(c.seen) > 0 {
		oldest := ""
		for name, s := range c.seen {
			if oldest == "" || s.at.Before(c.seen[oldest].at) {
				oldest = name
			}
		}
		if len(c.seen) <= maxInstances && at.Sub(c.seen[oldest].at) <= forgetAfter {
			return
		}
		delete(c.seen, oldest)
	}
}

func startOf(text string) time.Time {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || seconds <= 0 || seconds > 1<<40 {
		return time.Time{}
	}
	return time.Unix(0, int64(seconds*float64(time.Second)))
}
