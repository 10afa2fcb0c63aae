// SPDX-License-Identifier: Apache-2.0

// Package explanation reads why some mutants may survive: since they behave as the
// original does, or since the difference is of no importance.
package explanation

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
)

// Set holds the explanation of each mutant that has one.
type Set map[mutation.Key]string

// ReadSet reads explanations. Each is a paragraph of four lines; lines that begin
// with a number sign are comments:
//
//	path/of/file.go Function #2
//	- the lines of the original
//	+ the lines of the mutant
//	= why it may survive
//
// The number is left out where it is 1.
func ReadSet(r io.Reader) (Set, error) {
	set := Set{}
	var lines []string
	scanner := bufio.NewScanner(r)
	for number := 1; scanner.Scan(); number++ {
		line := strings.TrimSpace(scanner.Text())
		switch {
		case strings.HasPrefix(line, "#"):
		case line != "":
			lines = append(lines, line)
		case len(lines) > 0:
			if err := set.add(lines); err != nil {
				return nil, fmt.Errorf("line %d: %w", number-1, err)
			}
			lines = nil
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("reading lines: %w", err)
	}
	if len(lines) > 0 {
		if err := set.add(lines); err != nil {
			return nil, fmt.Errorf("last paragraph: %w", err)
		}
	}
	return set, nil
}

func (s Set) add(lines []string) error {
	if len(lines) != 4 {
		return fmt.Errorf("a paragraph has four lines, this one has %d", len(lines))
	}
	place := strings.Fields(lines[0])
	if len(place) != 2 && len(place) != 3 {
		return errors.New("a paragraph begins with a file and a function")
	}
	key := mutation.Key{File: place[0], Function: place[1], Number: 1}
	if len(place) == 3 {
		n, err := strconv.Atoi(strings.TrimPrefix(place[2], "#"))
		if err != nil {
			return fmt.Errorf("parsing the number of the mutant: %w", err)
		}
		key.Number = n
	}
	var texts [3]string
	for i, mark := range []string{"- ", "+ ", "= "} {
		text, ok := strings.CutPrefix(lines[i+1], mark)
		if !ok || text == "" {
			return fmt.Errorf("line %d of a paragraph begins with %q and a text", i+2, mark)
		}
		texts[i] = text
	}
	key.Old, key.New = texts[0], texts[1]
	if _, ok := s[key]; ok {
		return fmt.Errorf("%s is explained twice", key)
	}
	s[key] = texts[2]
	return nil
}

// WriteParagraph writes a paragraph of ReadSet.
func WriteParagraph(w io.Writer, key mutation.Key, why string) error {
	place := key.File + " " + key.Function
	if key.Number > 1 {
		place += fmt.Sprintf(" #%d", key.Number)
	}
	_, err := fmt.Fprintf(w, "%s\n- %s\n+ %s\n= %s\n\n", place, key.Old, key.New, why)
	return err
}
