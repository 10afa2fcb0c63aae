// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	kjson "sigs.k8s.io/json"
)

// MaxBytes and MaxDepth bound a body of a request.
const (
	MaxBytes = 1 << 20
	MaxDepth = 32
)

// ErrTooLarge is the error of a body of more than [MaxBytes].
var ErrTooLarge = fmt.Errorf("the body has more than %d bytes", MaxBytes)

// Decode reads the body of a request. It refuses a body that is larger or deeper than the bounds,
// that is no single JSON object, or that has a field twice, one that T lacks, or a name in another
// case of letters. The error names each such field.
func Decode[T any](body []byte) (value T, err error) { return value, Unmarshal(body, &value) }

// Unmarshal reads the body of a request into the value that a pointer leads to, as [Decode] does.
func Unmarshal(body []byte, into any) error {
	if len(body) > MaxBytes {
		return ErrTooLarge
	}
	if err := checkDepth(body); err != nil {
		return err
	}
	strict, err := kjson.UnmarshalStrict(body, into)
	if err != nil {
		return fmt.Errorf("decoding the body: %w", err)
	}
	return errors.Join(strict...)
}

// checkDepth wants one JSON object whose values are nested at most [MaxDepth] deep.
func checkDepth(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	for depth, first := 0, true; ; first = false {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF) && first:
			return errors.New("the body is empty")
		case errors.Is(err, io.EOF) && depth == 0:
			return nil
		case errors.Is(err, io.EOF):
			return errors.New("the body ends early")
		case err != nil:
			return fmt.Errorf("decoding the body: %w", err)
		case depth == 0 && (!first || token != json.Delim('{')):
			return errors.New("the body is not one JSON object")
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth > MaxDepth {
			return fmt.Errorf("the body is nested more than %d deep", MaxDepth)
		}
	}
}
