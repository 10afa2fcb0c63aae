// SPDX-License-Identifier: Apache-2.0

package runtimeapi

import (
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stat is a row of `show stat`.
type Stat struct {
	// Proxy is the name of a section, Server that of a server, or FRONTEND or BACKEND.
	Proxy, Server string
	// Sessions are the requests in flight.
	Sessions uint64
	// Answers by the first digit of their status.
	Answers1xx, Answers2xx, Answers3xx, Answers4xx, Answers5xx, AnswersOther uint64
	// GivenUp counts transfers that clients ended.
	GivenUp uint64
}

// IsBackend says whether the row sums all servers of a backend, and the answers of HAProxy for them.
func (s Stat) IsBackend() bool { return s.Server == "BACKEND" }

// Answered are all that have an answer.
func (s Stat) Answered() uint64 {
	return s.Answers1xx + s.Answers2xx + s.Answers3xx + s.Answers4xx + s.Answers5xx + s.AnswersOther
}

// Stats reads all counters.
func (c Client) Stats(ctx context.Context) ([]Stat, error) {
	said, err := c.Do(ctx, "show", "stat")
	if err != nil {
		return nil, err
	}
	return ParseStats(said)
}

// ParseStats reads the answer to `show stat`, whose columns differ between versions and are found by
// their names. Rows of listeners and frontends are not returned: they count no answers of arms.
func ParseStats(said string) ([]Stat, error) {
	header, rows, _ := strings.Cut(said, "\n")
	names, isHeader := strings.CutPrefix(header, "# ")
	if !isHeader {
		return nil, fmt.Errorf("reading statistics: got %.100q", said)
	}
	columns := map[string]int{}
	for i, name := range strings.Split(names, ",") {
		columns[name] = i
	}
	reader := csv.NewReader(strings.NewReader(rows))
	reader.FieldsPerRecord, reader.LazyQuotes, reader.ReuseRecord = -1, true, true
	records, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading statistics: %w", err)
	}
	var stats []Stat
	for _, record := range records {
		row := fields{record: record, columns: columns}
		s := Stat{Proxy: row.text("pxname"), Server: row.text("svname")}
		if row.err == nil && (s.Server == "FRONTEND" || row.text("type") == "3") {
			continue
		}
		s.Sessions, s.GivenUp = row.number("scur"), row.number("cli_abrt")
		s.Answers1xx, s.Answers2xx, s.Answers3xx = row.number("hrsp_1xx"), row.number("hrsp_2xx"), row.number("hrsp_3xx")
		s.Answers4xx, s.Answers5xx, s.AnswersOther = row.number("hrsp_4xx"), row.number("hrsp_5xx"), row.number("hrsp_other")
		if row.err != nil {
			return nil, fmt.Errorf("reading statistics of %.50s/%.50s: %w", s.Proxy, s.Server, row.err)
		}
		stats = append(stats, s)
	}
	return stats, nil
}

// fields of a record, by the names of columns. The first error stays.
type fields struct {
	record  []string
	columns map[string]int
	err     error
}

func (f *fields) text(name string) string {
	i, known := f.columns[name]
	if !known || i >= len(f.record) {
		f.fail(fmt.Errorf("there is no column %s", name))
		return ""
	}
	return f.record[i]
}

// number is 0 in an empty field, as of a server that has no section of HTTP.
func (f *fields) number(name string) uint64 {
	text := f.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		f.fail(fmt.Errorf("column %s has %.20q, want a number", name, text))
	}
	return n
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// Info says which process answers.
type Info struct {
	PID    int
	Uptime time.Duration
	// Version is such as 2.8.25.
	Version string
}

// Info reads which process answers.
func (c Client) Info(ctx context.Context) (Info, error) {
	said, err := c.Do(ctx, "show", "info")
	if err != nil {
		return Info{}, err
	}
	return ParseInfo(said)
}

// ParseInfo reads the answer to `show info`.
func ParseInfo(said string) (Info, error) {
	values := map[string]string{}
	for line := range strings.SplitSeq(said, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		values[name] = value
	}
	pid, err := strconv.Atoi(values["Pid"])
	if err != nil || pid <= 0 {
		return Info{}, fmt.Errorf("reading information on the process: Pid is %.20q", values["Pid"])
	}
	seconds, err := strconv.ParseUint(values["Uptime_sec"], 10, 31)
	if err != nil {
		return Info{}, fmt.Errorf("reading information on the process: Uptime_sec is %.20q", values["Uptime_sec"])
	}
	version, _, _ := strings.Cut(values["Version"], "-")
	return Info{PID: pid, Uptime: time.Duration(seconds) * time.Second, Version: version}, nil //nolint:gosec // 31 bits
}
