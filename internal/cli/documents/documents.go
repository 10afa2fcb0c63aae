// SPDX-License-Identifier: Apache-2.0

package documents

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

// InputError is a fault of one input, with the place to look at.
type InputError struct {
	Source  string
	Offset  int // bytes from the start of the input, from 0
	Problem string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("%s: offset %d: %s", e.Source, e.Offset, e.Problem)
}

// Document is one object of an input, as JSON.
type Document struct {
	Source string
	Number int // from 1, counting those that hold something
	Start  int // where it begins in the input
	Body   []byte
	// Locate gives the place in the input of an offset in body.
	Locate func(offset int) int
}

// Fault turns an error of package canon into one that names file and offset;
// shift is the text before body that makes canon read it.
func (d *Document) Fault(err error, shift int) error {
	syntax, ok := errors.AsType[*canon.SyntaxError](err)
	if !ok {
		return &InputError{Source: d.Source, Offset: d.Start, Problem: err.Error()}
	}
	problem := strings.TrimSuffix(syntax.Error(), fmt.Sprintf(" at offset %d", syntax.Offset))
	return &InputError{Source: d.Source, Offset: d.Locate(max(0, syntax.Offset-shift)), Problem: problem}
}

// ReadInput reads one -f argument whole; "-" is standard input.
func ReadInput(filename string, stdin io.Reader) (source string, data []byte, err error) {
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
		return source, nil, &InputError{Source: source, Offset: maxInputBytes, Problem: fmt.Sprintf("input of more than %d bytes", maxInputBytes)}
	}
	return source, data, nil
}

// byteOrderMark may begin a YAML stream; RFC 8259 forbids it before JSON.
const byteOrderMark = "\ufeff"

// Parse gives the objects of an input. An input that begins with "{" is one
// strict JSON document: a stray comma must not turn JSON into YAML that means
// something else. Anything else is a YAML stream. No document is an error.
func Parse(source string, data []byte) ([]Document, error) {
	if IsJSON(data) {
		d := Document{Source: source, Number: 1, Body: data, Locate: func(offset int) int { return offset }}
		return []Document{d}, d.check()
	}
	docs, err := readYAML(source, data)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, &InputError{Source: source, Offset: len(data), Problem: "the input holds no document"}
	}
	for i := range docs {
		if err := docs[i].check(); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// IsJSON tells a JSON document from YAML by its first character.
func IsJSON(data []byte) bool {
	text := bytes.TrimPrefix(data, []byte(byteOrderMark))
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
}

// check refuses the documents that canon refuses, so that both algorithms see the same
// inputs: encoding/json, on which ddem002 rests, would let some pass.
func (d *Document) check() error {
	parsed, err := canon.Parse(d.Body, canon.GVK{})
	if err != nil {
		return d.Fault(err, 0)
	}
	parsed.Release()
	return nil
}
