// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

// HashSpec is the ddem002 hash of a spec's JSON bytes. Empty input and null
// count as the empty map. Numbers are read as Kubernetes reads them into
// unstructured objects: an integer literal that fits int64 stays exact, any
// other becomes a float64. As in DD-EM-002, a repeated key overwrites and
// invalid UTF-8 becomes U+FFFD; who wants them refused runs [Parse] first.
func HashSpec(spec []byte) (Hash, error) {
	if len(spec) > MaxBodyBytes {
		return "", &SyntaxError{Offset: MaxBodyBytes, Reason: ReasonTooLarge}
	}
	if len(bytes.TrimSpace(spec)) == 0 {
		return HashValue(nil)
	}
	value, err := decodeSpec(spec)
	if err != nil {
		return "", fmt.Errorf("hashing spec: %w", err)
	}
	switch value.(type) {
	case nil, map[string]any:
		return HashValue(value)
	default:
		return "", fmt.Errorf("hashing spec: %w", errNotMap)
	}
}

// HashBodySpec is the ddem002 hash of the .spec of an object's JSON bytes. An object without a spec has
// the hash of the empty map. The error is a [*SyntaxError] or that of [HashSpec].
func HashBodySpec(body []byte, gvk GVK) (Hash, error) {
	d, err := Parse(ReplaceLoneSurrogates(body), gvk)
	if err != nil {
		return "", err
	}
	defer d.Release()
	spec := d.Root().Get("spec")
	if spec.Kind() == Absent {
		return HashSpec(nil)
	}
	return HashSpec(spec.Raw())
}

// ReplaceLoneSurrogates replaces each \u escape of half a surrogate pair by \ufffd, as the JSON decoder of
// DD-EM-002 reads it, for callers that run [Parse] first. All other bytes keep their place. JSON without
// such an escape is returned as it is, and so are bytes that are no JSON.
func ReplaceLoneSurrogates(src []byte) []byte {
	out, copied := src, false
	for i := bytes.IndexByte(src, '\\'); i >= 0 && i+1 < len(src); {
		next := i + 2
		if src[i+1] == 'u' {
			_, after, reason := unescapeUnicode(src, i)
			switch reason {
			case "":
				next = after
			case ReasonLoneSurrogate:
				if !copied {
					out, copied = bytes.Clone(src), true
				}
				next = i + len(`\uXXXX`)
				copy(out[i:next], `\ufffd`)
			default: // it is no JSON
			}
		}
		step := bytes.IndexByte(src[next:], '\\')
		if step < 0 {
			break
		}
		i = next + step
	}
	return out
}

var (
	errNotMap   = errors.New("not a JSON object")
	errTrailing = errors.New("data after the object")
)

func decodeSpec(spec []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(spec))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errTrailing
	}
	return nativeNumbers(value)
}

// nativeNumbers replaces json.Number, in place, by int64 or float64.
func nativeNumbers(value any) (any, error) {
	var err error
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if v[key], err = nativeNumbers(member); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, element := range v {
			if v[i], err = nativeNumbers(element); err != nil {
				return nil, err
			}
		}
	case json.Number:
		if integer, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return integer, nil
		}
		return v.Float64()
	}
	return value, nil
}

// HashValue is the ddem002 hash of a decoded spec; nil counts as the empty map.
// Only map[string]any and []any are normalized: anything else goes through
// encoding/json as it is, so typed slices keep their order. Errors are those of
// json.Marshal.
func HashValue(spec any) (Hash, error) {
	if spec == nil {
		spec = map[string]any{}
	}
	canonical, err := appendDDEM002(nil, spec)
	if err != nil {
		return "", fmt.Errorf("hashing spec: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return formatHash(prefixDDEM002, sum[:]), nil
}

// appendDDEM002 appends json.Marshal of the normalized value. Each element's
// bytes are made once and then sorted: the published comparator makes both
// anew in every comparison, at every depth.
func appendDDEM002(dst []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case map[string]any:
		return appendSortedMap(dst, v)
	case []any:
		return appendSortedList(dst, v)
	default:
		text, err := json.Marshal(v)
		return append(dst, text...), err
	}
}

func appendSortedMap(dst []byte, members map[string]any) ([]byte, error) {
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		text, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, text...), ':')
		if dst, err = appendDDEM002(dst, members[key]); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendSortedList(dst []byte, elements []any) ([]byte, error) {
	texts := make([][]byte, len(elements))
	for i, element := range elements {
		text, err := appendDDEM002(nil, element)
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	slices.SortFunc(texts, bytes.Compare)
	dst = append(dst, '[')
	dst = append(dst, bytes.Join(texts, []byte{','})...)
	return append(dst, ']'), nil
}
