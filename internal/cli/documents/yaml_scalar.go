// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

type scalarKind uint8

const (
	scalarString scalarKind = iota
	scalarNull
	scalarBool
	scalarInteger
	scalarDecimal
	// scalarNotFinite is .inf or .nan, which JSON cannot say.
	scalarNotFinite
)

// scalar is a resolved YAML scalar: text is the JSON literal, or the string.
type scalar struct {
	kind scalarKind
	text string
}

func (s scalar) json() []byte {
	if s.kind == scalarString {
		return quote(s.text)
	}
	return []byte(s.text)
}

func quote(text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return quoted
}

var (
	yamlNulls = []string{"", "~", "null", "Null", "NULL"}
	// The booleans of YAML 1.1, which kubectl reads: "on" and "y" are true.
	yamlTrue      = []string{"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}
	yamlFalse     = []string{"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}
	yamlNotFinite = []string{".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"}
	plainScalars  = plainTable()
	yamlDecimal   = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

func plainTable() map[string]scalar {
	table := map[string]scalar{}
	for _, words := range []struct {
		spellings []string
		means     scalar
	}{
		{yamlNulls, scalar{scalarNull, "null"}},
		{yamlTrue, scalar{scalarBool, "true"}},
		{yamlFalse, scalar{scalarBool, "false"}},
		{yamlNotFinite, scalar{kind: scalarNotFinite}},
	} {
		for _, word := range words.spellings {
			table[word] = words.means
		}
	}
	return table
}

// resolvePlain gives the meaning of an unquoted, untagged scalar as kubectl's
// YAML reader has it: timestamps are strings, 0x1F, 0o17, 017 and 0b11 are
// integers, underscores in numbers are dropped.
func resolvePlain(text string) scalar {
	if known, ok := plainScalars[text]; ok {
		return known
	}
	if strings.IndexByte("+-.0123456789", text[0]) < 0 {
		return scalar{scalarString, text}
	}
	digits := strings.ReplaceAll(text, "_", "")
	if text[0] == '.' && !goFloat(text) {
		digits = text
	}
	if n, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return scalar{scalarInteger, strconv.FormatInt(n, 10)}
	}
	if n, err := strconv.ParseUint(digits, 0, 64); err == nil {
		return scalar{scalarInteger, strconv.FormatUint(n, 10)}
	}
	if yamlDecimal.MatchString(digits) {
		return scalar{scalarDecimal, jsonDecimal(digits)}
	}
	return scalar{scalarString, text}
}

// goFloat says that a text is a decimal in Go's spelling, where an underscore only
// separates digits: what begins with a point is read by that rule.
func goFloat(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil || errors.Is(err, strconv.ErrRange)
}

// jsonDecimal respells a YAML decimal by the grammar of RFC 8259, digit by
// digit: +.50 becomes 0.50, 1.e3 becomes 1e3. JSON's own spelling stays.
func jsonDecimal(text string) string {
	sign := ""
	if text[0] == '-' {
		sign = "-"
	}
	text = strings.TrimLeft(text, "+-")
	exponent := ""
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		text, exponent = text[:at], text[at:]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction + exponent
}

// scalar resolves a scalar node by its tag or, without one, by its spelling.
func (c *converter) scalar(n *yaml.Node) (scalar, error) {
	plain := resolvePlain(n.Value)
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if !tagged(n) {
		if quoted {
			return scalar{scalarString, n.Value}, nil
		}
		if plain.kind == scalarNotFinite {
			return plain, c.errorf(n, "%s has no JSON form", n.Value)
		}
		return plain, nil
	}
	switch tag := n.ShortTag(); {
	case tag == "!!str":
		return scalar{scalarString, n.Value}, nil
	case tag == "!!null" && plain.kind == scalarNull,
		tag == "!!bool" && plain.kind == scalarBool,
		tag == "!!int" && plain.kind == scalarInteger,
		tag == "!!float" && (plain.kind == scalarInteger || plain.kind == scalarDecimal):
		return plain, nil
	default:
		return plain, c.errorf(n, "%q cannot be read as %s", n.Value, n.Tag)
	}
}

// key gives the JSON key: kubectl turns integers, decimals and booleans into
// strings.
func (c *converter) key(n *yaml.Node) (string, error) {
	n = resolveAlias(n)
	if n.Kind != yaml.ScalarNode {
		return "", c.errorf(n, "a key must be a scalar")
	}
	if isMerge(n) {
		return n.Value, nil
	}
	s, err := c.scalar(n)
	if err != nil {
		return "", err
	}
	switch s.kind {
	case scalarString, scalarBool, scalarInteger:
		return s.text, nil
	case scalarDecimal:
		// Through float32, as kubectl does, or a ConfigMap key would change.
		value, err := strconv.ParseFloat(s.text, 64)
		if err != nil {
			return n.Value, nil //nolint:nilerr // what float64 cannot hold is a string to kubectl
		}
		return strconv.FormatFloat(value, 'g', -1, 32), nil
	case scalarNull, scalarNotFinite:
	}
	return "", c.errorf(n, "a key must be a string")
}
