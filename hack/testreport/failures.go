// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	// firstLines and lastLines of a failure are told: a fatal error is at the beginning,
	// the error of a test that logs much is near its end.
	firstLines, lastLines = 10, 10
	// maxLine is in bytes.
	maxLine = 500
)

// failure is a test that failed although no part of it did, or, without a test, a package.
type failure struct {
	Package, Test string
	Lines         []string
}

// failedTest sums up what a test that failed said itself. It returns false if a part of
// the test failed, which tells the reason.
func (p *packageRun) failedTest(test string) (failure, bool) {
	for part, passed := range p.passed {
		if !passed && strings.HasPrefix(part, test+"/") {
			return failure{}, false
		}
	}
	return failure{cut(p.name), test, gist(p.output, test)}, true
}

// gist returns the first and the last lines of what a test said. Without a test the
// lines are those of the package.
func gist(outputs []event, test string) (lines []string) {
	for _, o := range outputs {
		line := strings.TrimRight(o.Output, " \n")
		words := strings.TrimSpace(line)
		if o.Test != test || words == "" || strings.HasPrefix(words, "=== ") || strings.HasPrefix(words, "--- ") {
			continue
		}
		lines = append(lines, shorten(line))
	}
	if left := len(lines) - firstLines - lastLines; left > 0 {
		lines = append(append(lines[:firstLines:firstLines], fmt.Sprintf("[%d lines]", left)), lines[len(lines)-lastLines:]...)
	}
	return lines
}

func shorten(line string) string {
	if len(line) <= maxLine {
		return line
	}
	end := maxLine
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + fmt.Sprintf(" [%d bytes]", len(line)-end)
}

func renderFailures(stage string, failures []failure) string {
	var b strings.Builder
	for _, f := range failures {
		b.WriteString("\n== Failed in " + stage + ": " + strings.TrimSpace(f.Package+" "+f.Test) + "\n")
		for _, line := range f.Lines {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// appendTo adds a text to a file that other stages write, too.
func appendTo(name, text string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the caller of the command names it
	if err != nil {
		return fmt.Errorf("opening the list of failures: %w", err)
	}
	if _, err := f.WriteString(text); err != nil {
		_ = f.Close()
		return fmt.Errorf("adding to the list of failures: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("closing the list of failures: %w", err)
	}
	return nil
}
