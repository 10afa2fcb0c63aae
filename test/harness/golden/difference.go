// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// CheckDifference compares with a file that holds what differs from another golden file
// in the same directory, or writes it. The base is what the other file holds now, so
// that one run with UPDATE_GOLDEN=1 rewrites both only if Check of the base comes first.
func CheckDifference[T ~string | ~[]byte](t testing.TB, base, path string, got T) {
	t.Helper()
	of, err := os.ReadFile(filepath.Join(filepath.Dir(path), base))
	if err != nil {
		t.Fatalf("reading the base of %s: %v", path, err)
	}
	Check(t, path, header+base+"\n"+difference(string(of), string(got)))
}

// Read gives the content that a golden file stands for: its text, or its base with
// what differs.
func Read(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading a golden file: %v", err)
	}
	rest, differs := strings.CutPrefix(string(raw), header)
	if !differs {
		return string(raw)
	}
	base, script, _ := strings.Cut(rest, "\n")
	of, err := os.ReadFile(filepath.Join(filepath.Dir(path), base))
	if err != nil {
		t.Fatalf("reading the base of %s: %v", path, err)
	}
	whole, err := apply(string(of), script)
	if err != nil {
		t.Fatalf("applying %s: %v", path, err)
	}
	return whole
}

// header begins a file that holds a difference; the name of the base follows.
const header = "differs from "

// context is the number of equal lines shown on each side of what differs. alike is
// the line that stands for those which are not shown.
const (
	context = 2
	alike   = "@@ %d alike"
)

// difference says what differs in got, line by line: " " is equal, "-" is only in the
// base, "+" only in got. The numbers of lines are relative, so that a line which is
// added to the base changes one of them.
func difference(base, got string) string {
	if base == got {
		return ""
	}
	var out strings.Builder
	script := edits(strings.Split(base, "\n"), strings.Split(got, "\n"))
	for i := 0; i < len(script); {
		end := i
		for end < len(script) && script[end].of == ' ' {
			end++
		}
		if end == i {
			fmt.Fprintf(&out, "%c%s\n", script[i].of, script[i].line)
			i++
			continue
		}
		before, after := context, context
		if i == 0 {
			before = 0
		}
		if end == len(script) {
			after = 0
		}
		writeAlike(&out, script[i:end], before, after)
		i = end
	}
	return out.String()
}

// writeAlike writes a run of equal lines: the first and the last ones, and how many are
// between. The last name among those is a help for the reader.
func writeAlike(out *strings.Builder, run []edit, before, after int) {
	if len(run) <= before+after+1 {
		before, after = len(run), 0
	}
	show := func(lines []edit) {
		for _, e := range lines {
			fmt.Fprintf(out, " %s\n", e.line)
		}
	}
	show(run[:before])
	if hidden := run[before : len(run)-after]; len(hidden) > 0 {
		fmt.Fprintf(out, alike, len(hidden))
		for _, e := range slices.Backward(hidden) {
			if name := strings.TrimLeft(e.line, " -"); strings.HasPrefix(name, "name:") || strings.HasPrefix(name, `"name":`) {
				fmt.Fprintf(out, ", %s", name)
				break
			}
		}
		out.WriteString("\n")
	}
	show(run[len(run)-after:])
}

// apply makes the text of which difference(base, it) is the script.
func apply(base, script string) (string, error) {
	if script == "" {
		return base, nil
	}
	left := strings.Split(base, "\n")
	var out []string
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		count := 0
		switch {
		case strings.HasPrefix(line, "+"):
			out = append(out, line[1:])
			continue
		case strings.HasPrefix(line, "@@"):
			if _, err := fmt.Sscanf(line, alike, &count); err != nil {
				return "", fmt.Errorf("reading %q: %w", line, err)
			}
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "-"):
			count = 1
			if len(left) == 0 || left[0] != line[1:] {
				return "", fmt.Errorf("the base has no line %q there", line[1:])
			}
		default:
			return "", fmt.Errorf("%q is no line of a difference", line)
		}
		if count > len(left) {
			return "", errors.New("the base has fewer lines")
		}
		if line[0] != '-' {
			out = append(out, left[:count]...)
		}
		left = left[count:]
	}
	if len(left) > 0 {
		return "", fmt.Errorf("the base has %d more lines", len(left))
	}
	return strings.Join(out, "\n"), nil
}

// edit is one line and whether both have it (' '), only the base ('-') or only what is
// compared with it ('+').
type edit struct {
	of   byte
	line string
}

// edits makes one text of another by way of a longest common subsequence of their lines.
func edits(base, got []string) []edit {
	var head, tail []edit
	for len(base) > 0 && len(got) > 0 && base[0] == got[0] {
		head = append(head, edit{' ', base[0]})
		base, got = base[1:], got[1:]
	}
	for len(base) > 0 && len(got) > 0 && base[len(base)-1] == got[len(got)-1] {
		tail = append(tail, edit{' ', base[len(base)-1]})
		base, got = base[:len(base)-1], got[:len(got)-1]
	}
	slices.Reverse(tail)
	return slices.Concat(head, middle(base, got), tail)
}

func middle(base, got []string) []edit {
	longest := subsequences(base, got)
	var out []edit
	for i, j := 0, 0; i < len(base) || j < len(got); {
		switch {
		case i < len(base) && j < len(got) && base[i] == got[j]:
			out = append(out, edit{' ', base[i]})
			i, j = i+1, j+1
		case j == len(got) || i < len(base) && longest[i+1][j] >= longest[i][j+1]:
			out = append(out, edit{'-', base[i]})
			i++
		default:
			out = append(out, edit{'+', got[j]})
			j++
		}
	}
	return out
}

// subsequences gives at [i][j] the length of the longest one of base[i:] and got[j:].
func subsequences(base, got []string) [][]int32 {
	longest := make([][]int32, len(base)+1)
	for i := range longest {
		longest[i] = make([]int32, len(got)+1)
	}
	for i, line := range slices.Backward(base) {
		for j, other := range slices.Backward(got) {
			if line == other {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	return longest
}
