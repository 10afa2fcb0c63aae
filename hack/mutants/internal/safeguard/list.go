// SPDX-License-Identifier: Apache-2.0

// Package safeguard reads the list of safeguards: conditions of the code that protect an
// object, a person, or a record. Each entry says how the code reads without its safeguard.
package safeguard

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
)

// Entry is one safeguard.
type Entry struct {
	// Name is the sentence that is true without the safeguard.
	Name string
	// File is a path below the root of the module.
	File string
	// Packages are those whose unit tests have to notice.
	Packages []string
	// Old is the text of the safeguard, which the file has once; New is in its place without it.
	Old, New string
	// Why says why no test notices; empty where one has to.
	Why string
}

// ReadList reads a list. Each entry is a paragraph; lines that begin with a number sign are
// comments:
//
//	A target over which writers fight is written.
//	@ pkg/remediate/protocol/step.go
//	- the text of the safeguard
//	+ the text without it
//	= why no test notices
//
// Texts of several lines have a mark in each line. Behind the file stand the packages whose
// unit tests are run, if they are others than that of the file. The reason is left out where
// a test notices.
func ReadList(r io.Reader) ([]Entry, error) {
	var list []Entry
	var lines []string
	names := map[string]bool{}
	finish := func(number int) error {
		if len(lines) == 0 {
			return nil
		}
		e, err := parse(lines)
		if err == nil && names[e.Name] {
			err = fmt.Errorf("%q is there twice", e.Name)
		}
		if err != nil {
			return fmt.Errorf("paragraph that ends with line %d: %w", number, err)
		}
		names[e.Name] = true
		list, lines = append(list, e), nil
		return nil
	}
	scanner := bufio.NewScanner(r)
	number := 0
	for ; scanner.Scan(); number++ {
		line := scanner.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case line != "":
			lines = append(lines, line)
		default:
			if err := finish(number); err != nil {
				return nil, err
			}
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("reading lines: %w", err)
	}
	return list, finish(number)
}

func parse(lines []string) (Entry, error) {
	e := Entry{Name: lines[0]}
	texts := map[byte][]string{}
	for _, line := range lines[1:] {
		mark, text := line[0], strings.TrimPrefix(line[1:], " ")
		if !strings.ContainsRune("@-+=", rune(mark)) {
			return e, fmt.Errorf("%q has none of the marks @ - + =", line)
		}
		texts[mark] = append(texts[mark], text)
	}
	place := strings.Fields(strings.Join(texts['@'], " "))
	if len(place) == 0 {
		return e, errors.New("it names no file")
	}
	e.File, e.Packages = place[0], place[1:]
	if len(e.Packages) == 0 {
		e.Packages = []string{filepath.Dir(e.File)}
	}
	e.Old, e.New, e.Why = strings.Join(texts['-'], "\n"), strings.Join(texts['+'], "\n"), strings.Join(texts['='], " ")
	if e.Old == "" || e.Old == e.New {
		return e, errors.New("it changes nothing")
	}
	return e, nil
}

// Mutate returns the mutant that lacks the safeguard. The source of the file has to have
// the text of the safeguard exactly once.
func (e *Entry) Mutate(source []byte) (mutation.Mutant, error) {
	if n := bytes.Count(source, []byte(e.Old)); n != 1 {
		return mutation.Mutant{}, fmt.Errorf("%s has the text of %q %d times, want once", e.File, e.Name, n)
	}
	at := bytes.Index(source, []byte(e.Old))
	return mutation.Mutant{
		Key: mutation.Key{
			File: e.File, Function: e.Name, Number: 1,
			Old: strings.Join(strings.Fields(e.Old), " "), New: strings.Join(strings.Fields(e.New), " "),
		},
		Line:  1 + bytes.Count(source[:at], []byte("\n")),
		Start: at, End: at + len(e.Old), Text: e.New,
	}, nil
}
