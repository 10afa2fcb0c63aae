// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// The naive twin is a second pl1 and pl2, written from docs/reference/canonical-hash.md
// alone: encoding/json, maps, recursion. What the API reference calls a map or
// set list is written down here by hand and by field name, not taken from the
// generated table.

// naiveKeys are the merge keys of a field's list; an empty slice is a set.
var naiveKeys = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "ephemeralContainers": {"name"}, "env": {"name"},
	"volumes": {"name"}, "volumeMounts": {"mountPath"}, "volumeDevices": {"devicePath"}, "imagePullSecrets": {"name"},
	"hostAliases": {"ip"}, "claims": {"name"}, "topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
	"ports": {"containerPort", "protocol"}, "values": {},
}

type naiveTwin struct{ gvk canon.GVK }

func naiveCanonical(body []byte, gvk canon.GVK, exclude ...string) (string, error) {
	var root map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&root); err != nil {
		return "", err
	}
	for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(root, name)
	}
	twin := naiveTwin{gvk: gvk}
	ordered, stays := twin.order("", root), true
	out := func(p string) {
		if stays {
			ordered, stays = naiveRemove(ordered, naiveSplit(p))
		}
	}
	if gvk == service {
		for _, p := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies", "ports/*/nodePort"} {
			out("/spec/" + p)
		}
	}
	if gvk == pod {
		out("/spec/nodeName")
	}
	for _, p := range exclude {
		out(p)
	}
	if !stays {
		ordered = map[string]any{}
	}
	return naiveEncode(ordered), nil
}

// order drops null members of built-in kinds and reorders lists, bottom-up.
func (n naiveTwin) order(field string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, member := range v {
			if member != nil || n.gvk == custom {
				out[key] = n.order(key, member)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = n.order("", v[i])
		}
		return n.orderList(field, out)
	default:
		return value
	}
}

func (n naiveTwin) orderList(field string, list []any) []any {
	keys, known := naiveKeys[field]
	if field == "ports" && n.gvk == service {
		keys = []string{"port", "protocol"}
	}
	if !known || n.gvk == custom || field == "initContainers" {
		return list
	}
	tuples := make(map[int]string, len(list))
	for i, element := range list {
		tuple, fits := naiveTuple(element, keys)
		if !fits {
			return list
		}
		tuples[i] = tuple
		m, _ := element.(map[string]any)
		if text, isString := m["value"].(string); field == "env" && isString && strings.Contains(text, "$(") {
			return list
		}
	}
	positions := make([]int, len(list))
	for i := range positions {
		positions[i] = i
	}
	sort.SliceStable(positions, func(i, j int) bool { return tuples[positions[i]] < tuples[positions[j]] })
	out := make([]any, len(list))
	for i, position := range positions {
		out[i] = list[position]
	}
	return out
}

// naiveTuple encodes the keys so that plain string comparison is the order: a
// rank and the text, with a separator below every byte of a text that is not a
// control character (the generator makes none in keys).
func naiveTuple(element any, keys []string) (string, bool) {
	values := []any{element}
	if len(keys) > 0 {
		m, isMap := element.(map[string]any)
		if !isMap {
			return "", false
		}
		values = values[:0]
		for _, key := range keys {
			values = append(values, m[key])
		}
	}
	tuple := ""
	for _, value := range values {
		switch v := value.(type) {
		case nil:
			tuple += "0"
		case bool:
			tuple += "1" + fmt.Sprint(v)
		case json.Number:
			tuple += "2" + naiveNumber(string(v))
		case string:
			tuple += "3" + v
		default:
			return "", false
		}
		tuple += "\x00"
	}
	return tuple, true
}

func naiveSplit(path string) []string {
	if path == "" {
		return nil
	}
	parts := strings.Split(path[1:], "/")
	for i := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[i])
	}
	return parts
}

// naiveRemove gives the value without the path; false when nothing is left by it.
func naiveRemove(value any, path []string) (any, bool) {
	if len(path) == 0 {
		return nil, false
	}
	taken, left := false, 0
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if path[0] != "*" && path[0] != key {
				continue
			}
			if rest, stays := naiveRemove(member, path[1:]); stays {
				v[key] = rest
			} else {
				delete(v, key)
				taken = true
			}
		}
		left = len(v)
	case []any:
		out := []any{}
		for _, element := range v {
			if path[0] == "*" || naiveSelects(path[0], element) {
				rest, stays := naiveRemove(element, path[1:])
				if !stays {
					taken = true
					continue
				}
				element = rest
			}
			out = append(out, element)
		}
		left = len(out)
		value = out
	}
	return value, !taken || left > 0
}

// naiveSelects knows "[key=value]" of one string key.
func naiveSelects(segment string, element any) bool {
	key, want, _ := strings.Cut(strings.Trim(segment, "[]"), "=")
	m, isMap := element.(map[string]any)
	text, isString := m[key].(string)
	return strings.HasPrefix(segment, "[") && isMap && isString && text == want
}

func naiveEncode(value any) string {
	switch v := value.(type) {
	case map[string]any:
		var members []string
		for key := range v {
			members = append(members, key)
		}
		slices.Sort(members)
		for i, key := range members {
			members[i] = naiveString(key) + ":" + naiveEncode(v[key])
		}
		return "{" + strings.Join(members, ",") + "}"
	case []any:
		var elements []string
		for _, element := range v {
			elements = append(elements, naiveEncode(element))
		}
		return "[" + strings.Join(elements, ",") + "]"
	case string:
		return naiveString(v)
	case json.Number:
		return naiveNumber(string(v))
	default:
		return map[any]string{nil: "null", true: "true", false: "false"}[v]
	}
}

func naiveString(s string) string {
	for _, escape := range []string{`\\`, `""`, "\bb", "\ff", "\nn", "\rr", "\tt"} {
		s = strings.ReplaceAll(s, escape[:1], "\\"+escape[1:])
	}
	var b strings.Builder
	for _, r := range s {
		if r < 0x20 {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

// naiveNumber is for moderate exponents only: it makes the number.
func naiveNumber(literal string) string {
	r, ok := new(big.Rat).SetString(literal)
	if !ok {
		panic("no number: " + literal)
	}
	if r.Sign() == 0 {
		return "0"
	}
	sign := ""
	if r.Sign() < 0 {
		sign = "-"
		r.Neg(r)
	}
	ten, exponent := big.NewInt(10), 0
	for !r.IsInt() {
		r.Mul(r, new(big.Rat).SetInt(ten))
		exponent--
	}
	n := new(big.Int).Set(r.Num())
	for new(big.Int).Mod(n, ten).Sign() == 0 {
		n.Div(n, ten)
		exponent++
	}
	digits := n.String()
	point := len(digits) + exponent
	switch {
	case exponent >= 0 && point <= 21:
		return sign + digits + strings.Repeat("0", exponent)
	case exponent < 0 && 0 < point && point <= 21:
		return sign + digits[:point] + "." + digits[point:]
	case exponent < 0 && -6 < point && point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	default:
		return fmt.Sprintf("%s%se%d", sign, digits, exponent)
	}
}

func naiveHash(canonical string, gvk canon.GVK) string {
	sum := sha256.Sum256([]byte(canonical))
	prefix := "pl1:sha256:"
	if gvk == custom {
		prefix = "pl2:sha256:"
	}
	return prefix + hex.EncodeToString(sum[:])
}
