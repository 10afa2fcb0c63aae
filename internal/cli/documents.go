// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// maxInputBytes bounds one -f: thirty-two of the largest bodies there can be.
const maxInputBytes = 32 * canon.MaxBodyBytes

// stdinName is how errors call the input of "-f -".
const stdinName = "standard input"

// inputError is a fault of one input, with the place to look at.
type inputError struct {
	source  string
	offset  int // bytes from the start of the input, from 0
	problem string
}

func (e *inputError) Error() string {
	return fmt.Sprintf("%s: offset %d: %s", e.source, e.offset, e.problem)
}

// document is one object of an input, as JSON.
type document struct {
	source string
	number int // from 1, counting those that hold something
	start  int // where it begins in the input
	body   []byte
	// locate gives the place in the input of an offset in body.
	locate func(offset int) int
}

// fault turns an error of package canon into one that names file and offset;
// shift is what was put before body to make canon read it.
func (d *document) fault(err error, shift int) error {
	syntax, ok := errors.AsType[*canon.SyntaxError](err)
	if !ok {
		return &inputError{source: d.source, offset: d.start, problem: err.Error()}
	}
	problem := strings.TrimSuffix(syntax.Error(), fmt.Sprintf(" at offset %d", syntax.Offset))
	return &inputError{source: d.source, offset: d.locate(max(0, syntax.Offset-shift)), problem: problem}
}

// openInput reads one -f argument whole; "-" is standard input.
func openInput(filename string, stdin io.Reader) (source string, data []byte, err error) {
	source, reader := filename, stdin
	if filename == "-" {
		source = stdinName
	} else {
		file, err := os.Open(filename)
		if err != nil {
			return source, nil, err
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return source, nil, fmt.Errorf("%s is a directory: -f takes a file, or - for standard input", filename)
		}
		reader = file
	}
	data, err = io.ReadAll(io.LimitReader(reader, maxInputBytes+1))
	if err != nil {
		return source, nil, fmt.Errorf("reading %s: %w", source, err)
	}
	if len(data) > maxInputBytes {
		return source, nil, &inputError{source: source, offset: maxInputBytes, problem: fmt.Sprintf("input of more than %d bytes", maxInputBytes)}
	}
	return source, data, nil
}

// byteOrderMark may begin a YAML stream; RFC 8259 forbids it before JSON.
const byteOrderMark = "\ufeff"

// readDocuments gives the objects of an input. What begins with "{" is one
// strict JSON document: a stray comma must not turn JSON into YAML that means
// something else. Anything else is a YAML stream. No document is an error.
func readDocuments(source string, data []byte) ([]document, error) {
	if isJSON(data) {
		d := document{source: source, number: 1, body: data, locate: func(offset int) int { return offset }}
		return []document{d}, d.check()
	}
	docs, err := readYAML(source, data)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, &inputError{source: source, offset: len(data), problem: "the input holds no document"}
	}
	for i := range docs {
		if err := docs[i].check(); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// isJSON tells a JSON document from YAML by its first character.
func isJSON(data []byte) bool {
	text := bytes.TrimPrefix(data, []byte(byteOrderMark))
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
}

// check refuses what canon refuses, so that both algorithms see the same
// inputs: encoding/json, on which ddem002 rests, would let some pass.
func (d *document) check() error {
	parsed, err := canon.Parse(d.body, canon.GVK{})
	if err != nil {
		return d.fault(err, 0)
	}
	parsed.Release()
	return nil
}
