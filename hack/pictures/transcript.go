// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// line is a line of a terminal, with its time since the first line.
type line struct {
	at   time.Duration
	text string
}

var (
	// rule is the line above and below the heading of a scene.
	rule = strings.Repeat("-", 72)
	// sceneHeading matches the heading of a scene.
	sceneHeading = regexp.MustCompile(`^\d+\. `)
)

var (
	// consoleKey matches the key of a console in its address.
	consoleKey = regexp.MustCompile(`\?key=\S+`)
	// day matches the day of a time, which tells readers little and makes lines long.
	day = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}T`)
)

// closing is the heading after the last scene. The lines below it name files of the machine.
const closing = "What to try next"

// recordScenes copies the output of the demo, and returns its scenes as a transcript: a line
// for each line, with the milliseconds since the first scene before a tab. It leaves out the
// preparation, the closing words, the rules around headings, keys of consoles, and days.
func recordScenes(in io.Reader, out io.Writer, elapsed func() time.Duration) (string, error) {
	var r recorder
	for lines := bufio.NewReader(in); ; {
		text, err := lines.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("reading the output of the demo: %w", err)
		}
		if _, writeErr := io.WriteString(out, text); writeErr != nil {
			return "", fmt.Errorf("copying the output of the demo: %w", writeErr)
		}
		r.addLine(strings.TrimRight(text, "\n"), elapsed())
		if err != nil {
			return r.transcript.String(), checkRecorded(r.transcript.String())
		}
	}
}

// recorder makes a transcript of the lines that it gets.
type recorder struct {
	transcript strings.Builder
	// begun is the time of the first heading.
	begun time.Duration
	// recording is true between the first heading and the closing one, and blank after an empty
	// line.
	recording, blank bool
}

func (r *recorder) addLine(text string, now time.Duration) {
	if sceneHeading.MatchString(text) {
		r.recording = !strings.HasSuffix(text, ". "+closing)
		if r.transcript.Len() == 0 {
			r.begun = now
		}
	}
	if !r.recording || text == rule {
		return
	}
	if text == "" {
		r.blank = r.transcript.Len() > 0
		return
	}
	at := (now - r.begun).Milliseconds()
	if r.blank {
		fmt.Fprintf(&r.transcript, "%d\t\n", at)
	}
	r.blank = false
	fmt.Fprintf(&r.transcript, "%d\t%s\n", at, maskLine(text))
}

// maskLine hides keys of consoles, and the days of times.
func maskLine(text string) string {
	return day.ReplaceAllString(consoleKey.ReplaceAllString(text, "?key=…"), "")
}

// checkRecorded refuses an empty transcript.
func checkRecorded(transcript string) error {
	if transcript == "" {
		return errors.New("the output has no scene; record the output of `make demo`")
	}
	return nil
}

// parseTranscript reads a transcript. Its times must not go back.
func parseTranscript(text string) ([]line, error) {
	var lines []line
	for row := range strings.Lines(text) {
		at, content, found := strings.Cut(strings.TrimRight(row, "\n"), "\t")
		milliseconds, err := strconv.ParseInt(at, 10, 64)
		if err != nil || !found {
			return nil, fmt.Errorf("line %d is %q, want milliseconds, a tab and a text", len(lines)+1, row)
		}
		next := line{time.Duration(milliseconds) * time.Millisecond, content}
		if len(lines) > 0 && next.at < lines[len(lines)-1].at {
			return nil, fmt.Errorf("line %d is older than the line above it", len(lines)+1)
		}
		lines = append(lines, next)
	}
	return lines, checkRecorded(text)
}
