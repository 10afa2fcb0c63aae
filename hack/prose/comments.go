// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ratchetFile lists the folders with comments above the budgets of prose, and the bounds that they have instead.
const ratchetFile = "hack/prose/ratchet.txt"

// bounds are the uses per 1,000 words that the comments of a folder may have.
type bounds struct{ who, nobody int }

// readComments returns an area for the comments of each folder of commands and of internal packages. Tests are no part of it.
func readComments(root string) ([]area, error) {
	folders := map[string]*area{}
	for _, top := range []string{"cmd", "internal"} {
		err := walk(root, top, []string{".go"}, func(name string, text []byte) error {
			if strings.HasSuffix(name, "_test.go") {
				return nil
			}
			file, err := parseGo(name, text)
			if err != nil {
				return err
			}
			folder := strings.Join(strings.SplitN(name, "/", 3)[:2], "/")
			if folders[folder] == nil {
				folders[folder] = &area{name: folder}
			}
			folders[folder].sentences = append(folders[folder].sentences, file.comments()...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	areas := make([]area, 0, len(folders))
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		areas = append(areas, *folders[folder])
	}
	return areas, nil
}

// readRatchet returns the bounds of the folders that the ratchet lists.
func readRatchet(root string) (map[string]bounds, error) {
	text, err := os.ReadFile(filepath.Join(root, ratchetFile))
	if err != nil {
		return nil, fmt.Errorf("reading the ratchet: %w", err)
	}
	return parseRatchet(string(text))
}

// parseRatchet reads a line for each folder: its name, and the bounds of what/who and of nobody. A line that begins with # is a comment.
func parseRatchet(text string) (map[string]bounds, error) {
	ratchet := map[string]bounds{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 3 {
			return nil, fmt.Errorf("%s:%d: a line has a folder and two bounds, not %d words", ratchetFile, number, len(words))
		}
		who, err := strconv.Atoi(words[1])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", ratchetFile, number, err)
		}
		nobody, err := strconv.Atoi(words[2])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", ratchetFile, number, err)
		}
		if _, twice := ratchet[words[0]]; twice {
			return nil, fmt.Errorf("%s:%d: folder %s has two lines", ratchetFile, number, words[0])
		}
		ratchet[words[0]] = bounds{who, nobody}
	}
	return ratchet, lines.Err()
}

// judgeComments returns the sentences by which a folder exceeds its bounds: those of the ratchet, or the budgets of prose.
func judgeComments(a area, ratchet map[string]bounds) (findings []string) {
	bound, listed := ratchet[a.name]
	if !listed {
		bound = bounds{whoBudget, nobodyBudget}
	}
	total := measure(a.sentences, nil)
	whoExceeded, nobodyExceeded := total.exceeds(total.who, bound.who), total.exceeds(total.nobody, bound.nobody)
	for _, s := range a.sentences {
		f := s.count(nil)
		if f.who > 0 && whoExceeded {
			findings = append(findings, fmt.Sprintf("%s: %q: what/who: the comments of %s have %.1f per 1,000 words, at most %d", s.place, s.text, a.name, total.perThousand(total.who), bound.who))
		}
		if f.nobody > 0 && nobodyExceeded {
			findings = append(findings, fmt.Sprintf("%s: %q: nobody/nothing/none: the comments of %s have %.1f per 1,000 words, at most %d", s.place, s.text, a.name, total.perThousand(total.nobody), bound.nobody))
		}
	}
	return findings
}

// judgeRatchet returns the lines of the ratchet that have become needless: their folders keep the budgets, or are gone.
func judgeRatchet(areas []area, ratchet map[string]bounds) (findings []string) {
	for _, folder := range slices.Sorted(maps.Keys(ratchet)) {
		at := slices.IndexFunc(areas, func(a area) bool { return a.name == folder })
		if at < 0 {
			findings = append(findings, fmt.Sprintf("%s: folder %s is gone: remove its line", ratchetFile, folder))
			continue
		}
		total := measure(areas[at].sentences, nil)
		if !total.exceeds(total.who, whoBudget) && !total.exceeds(total.nobody, nobodyBudget) {
			findings = append(findings, fmt.Sprintf("%s: the comments of %s keep the budgets: remove its line", ratchetFile, folder))
		}
	}
	return findings
}
