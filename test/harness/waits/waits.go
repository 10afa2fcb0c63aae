// SPDX-License-Identifier: Apache-2.0

// Package waits has what all waits of tests share: the pause between two checks
// ([Interval]), the text of a failure ([Wait.Failure]), and a record of each wait for
// the report of a test run ([Record], [Read]). [Until] waits without a test.
package waits

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Variable names the environment variable with the folder of the records. Without the
// variable, no wait is recorded.
const Variable = "PLUMBLINE_WAITS"

// The first pause and the longest one: a check is a request as a rule.
const (
	first, longest       = 20 * time.Millisecond, 200 * time.Millisecond
	hotFirst, hotLongest = time.Millisecond, 20 * time.Millisecond
)

// Hot is a path of Plumbline whose latency the report of a test run shows.
type Hot string

// The hot paths.
const (
	// Detection lasts from the write of a drift until the finding is visible.
	Detection Hot = "detection"
	// Confirmation lasts from a write until the proxies or the plan confirm the write.
	Confirmation Hot = "confirmation"
	// Takeover lasts from the loss of a leader until another replica acts.
	Takeover Hot = "takeover"
)

// Paths lists the hot paths.
func Paths() []Hot { return []Hot{Detection, Confirmation, Takeover} }

// Wait is one wait of a test.
type Wait struct {
	// Package is the last element of the path of the test's package; Record fills it in.
	Package string  `json:"package"`
	Test    string  `json:"test"`
	What    string  `json:"what"`
	Seconds float64 `json:"seconds"`
	Limit   float64 `json:"limit"`
	Passed  bool    `json:"passed"`
	Hot     Hot     `json:"hot,omitempty"`
}

// Interval computes the pause after a check, the first of which is attempt 0. The pause
// doubles, so that a short wait ends soon and a long wait costs few requests.
func Interval(attempt int) time.Duration { return double(first, longest, attempt) }

// HotInterval is Interval for a wait whose length is a measurement.
func HotInterval(attempt int) time.Duration { return double(hotFirst, hotLongest, attempt) }

func double(pause, limit time.Duration, times int) time.Duration {
	for range times {
		if pause *= 2; pause >= limit {
			return limit
		}
	}
	return pause
}

// Failure words the end of a wait that was in vain.
func (w *Wait) Failure(last any) string {
	return fmt.Sprintf("waited %s (limit %s) until %s; last seen: %v", duration(w.Seconds), duration(w.Limit), w.What, last)
}

// duration reads seconds, without digits that say nothing.
func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
}

// Record appends a wait to the file of this process in the folder that [Variable] names.
//
// Record calls the kernel itself: what a test reads by package os becomes a part of the
// key under which the go command caches the result of the test.
func Record(w *Wait) error {
	folder, _ := syscall.Getenv(Variable)
	if folder == "" {
		return nil
	}
	program := filepath.Base(os.Args[0])
	w.Package = strings.TrimSuffix(program, ".test")
	line, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("recording a wait: %w", err)
	}
	name := fmt.Sprintf("%s-%d.jsonl", program, os.Getpid())
	descriptor, err := syscall.Open(filepath.Join(folder, name), syscall.O_CREAT|syscall.O_APPEND|syscall.O_WRONLY|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("recording a wait (%s names the folder %s, which must exist): %w", Variable, folder, err)
	}
	file := os.NewFile(uintptr(descriptor), name)
	// One call writes the line, so that lines of goroutines never mix.
	if _, err := file.Write(append(line, '\n')); err != nil {
		return errors.Join(fmt.Errorf("recording a wait: %w", err), file.Close())
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("recording a wait: %w", err)
	}
	return nil
}

// Read reads all records of a folder. A process that was killed may have left half of a
// line at the end of its file, which Read passes over.
func Read(folder string) ([]Wait, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("looking for records of waits: %w", err)
	}
	var all []Wait
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading records of waits: %w", err)
		}
		whole := content[:bytes.LastIndexByte(content, '\n')+1]
		lines := bufio.NewScanner(bytes.NewReader(whole))
		lines.Buffer(nil, len(whole)+1)
		for lines.Scan() {
			var w Wait
			if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
				return nil, fmt.Errorf("reading records of waits in %s: %w", filepath.Base(name), err)
			}
			all = append(all, w)
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("reading records of waits in %s: %w", filepath.Base(name), err)
		}
	}
	return all, nil
}
