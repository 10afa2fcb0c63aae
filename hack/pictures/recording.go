// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// columns is the width of the terminal in characters, and rows its height in lines.
	columns, rows = 112, 32
	// charWidth and lineHeight are in pixels, as is the margin around the text.
	charWidth, lineHeight, margin = 7.5, 17, 14
	// longestPause bounds a pause of the recording, and lastPause is the time of its end.
	longestPause, lastPause = 1500 * time.Millisecond, 5 * time.Second
)

// screen is a state of the terminal: the number of lines that it has printed by a time.
type screen struct {
	at    time.Duration
	lines int
}

// drawRecording draws a terminal that prints lines at their times, and begins again after the
// last one. All lines are one tall text, which moves up behind a window.
func drawRecording(lines []line) string {
	lines = wrapLines(shortenPauses(lines))
	screens, length := listScreens(lines)
	width, height := int(columns*charWidth)+2*margin, rows*lineHeight+2*margin
	var b strings.Builder
	b.WriteString(openPicture(width, height, "The demo in a terminal",
		"A recording of make demo: it deploys a shop, changes it by hand, and shows the drift that Plumbline finds, remediates and proves. docs/pictures/demo.txt has the text.",
		drawMotion(screens, length)))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" class="window"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<svg x="%d" y="%d" width="%d" height="%d"><g class="roll" xml:space="preserve">`+"\n", margin, margin, width-2*margin, rows*lineHeight)
	for i, l := range lines {
		if l.text != "" {
			fmt.Fprintf(&b, "<text y=\"%d\"%s>%s</text>\n", (i+1)*lineHeight-4, classOf(l.text), escapeText(l.text))
		}
	}
	b.WriteString("</g></svg>\n</svg>\n")
	return b.String()
}

// shortenPauses moves lines forward, so that no pause is longer than the longest one.
func shortenPauses(lines []line) []line {
	shortened := make([]line, len(lines))
	saved := time.Duration(0)
	for i, l := range lines {
		if i > 0 {
			saved += max(0, l.at-lines[i-1].at-longestPause)
		}
		shortened[i] = line{l.at - saved, l.text}
	}
	return shortened
}

// wrapLines breaks lines that are wider than the terminal, as a terminal does.
func wrapLines(lines []line) []line {
	var wrapped []line
	for _, l := range lines {
		text := []rune(l.text)
		for len(text) > columns {
			wrapped = append(wrapped, line{l.at, string(text[:columns])})
			text = text[columns:]
		}
		wrapped = append(wrapped, line{l.at, string(text)})
	}
	return wrapped
}

// listScreens lists the states of the terminal, and returns the length of the recording.
// Lines within a tenth of a second appear at once.
func listScreens(lines []line) (screens []screen, length time.Duration) {
	for i, l := range lines {
		if n := len(screens); n > 0 && l.at-screens[n-1].at < 100*time.Millisecond {
			screens[n-1].lines = i + 1
			continue
		}
		screens = append(screens, screen{l.at, i + 1})
	}
	return screens, lines[len(lines)-1].at + lastPause
}

// drawMotion returns the style sheet that moves the text. A reader who prefers no motion sees
// the end of the recording.
func drawMotion(screens []screen, length time.Duration) string {
	var b strings.Builder
	b.WriteString(`.window{fill:var(--paper);stroke:var(--edge)}
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--dim);white-space:pre}
.h{fill:var(--ink);font-weight:700}.c{fill:var(--blue)}.r{fill:var(--green)}.w{fill:var(--red)}
`)
	last := screens[len(screens)-1]
	fmt.Fprintf(&b, ".roll{transform:translateY(%dpx);animation:roll %.1fs step-end infinite}\n", offsetOf(last), length.Seconds())
	b.WriteString("@media(prefers-reduced-motion:reduce){.roll{animation:none}}\n@keyframes roll{\n")
	for _, s := range screens {
		fmt.Fprintf(&b, "%.2f%%{transform:translateY(%dpx)}\n", 100*s.at.Seconds()/length.Seconds(), offsetOf(s))
	}
	b.WriteString("}\n")
	return b.String()
}

// offsetOf returns how far the text moves so that its last printed line is the last row.
func offsetOf(s screen) int { return (rows - s.lines) * lineHeight }

// classOf returns the class attribute of a line: a heading, a command, a result or a warning.
func classOf(text string) string {
	switch {
	case sceneHeading.MatchString(text):
		return ` class="h"`
	case strings.HasPrefix(text, "$ "):
		return ` class="c"`
	case strings.HasPrefix(text, "=> "):
		return ` class="r"`
	case strings.HasPrefix(text, "  Warning:"):
		return ` class="w"`
	}
	return ""
}

// widthOf returns the number of characters of a text.
func widthOf(text string) int { return utf8.RuneCountInString(text) }
