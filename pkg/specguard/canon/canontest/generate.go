// SPDX-License-Identifier: Apache-2.0

package canontest

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// Members is a drawn map; other drawn values are nil, bool, string, json.Number
// and []any.
// It keeps an order of its own, so that a body can be written in many.
type Members []Member

// Member is one member of a map.
type Member struct {
	Key   string
	Value any
}

var names = []string{"a", "b", "c", "app", "z-1", "~x", "y/y", "é", "[k]", "*", ""}

func drawName(t *rapid.T) string { return rapid.SampledFrom(names).Draw(t, "name") }

func drawText(t *rapid.T) string {
	if rapid.Bool().Draw(t, "usual") {
		return rapid.SampledFrom([]string{"x", "$(A)", "", "a b", "<&>", "25%", "500m"}).Draw(t, "text")
	}
	return rapid.String().Draw(t, "text")
}

func drawNumber(t *rapid.T) json.Number {
	text := fmt.Sprint(rapid.Int64().Draw(t, "integer"))
	if rapid.Bool().Draw(t, "small") {
		text = fmt.Sprint(rapid.IntRange(-3, 3).Draw(t, "integer"))
	}
	if rapid.Bool().Draw(t, "point") {
		text += fmt.Sprintf(".%d", rapid.IntRange(0, 5000).Draw(t, "fraction"))
	}
	if rapid.Bool().Draw(t, "power") {
		text += rapid.SampledFrom([]string{"e", "E", "e+", "E-", "e-0"}).Draw(t, "e") +
			fmt.Sprint(rapid.IntRange(0, 25).Draw(t, "exponent"))
	}
	return json.Number(text)
}

// Value draws any value, at most so deep.
func Value(t *rapid.T, depth int) any {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return drawNumber(t)
	case 3, 4:
		return drawText(t)
	case 5:
		list := make([]any, rapid.IntRange(0, 4).Draw(t, "elements"))
		for i := range list {
			list[i] = Value(t, depth-1)
		}
		return list
	default:
		return drawMembers(t, names, func(string) any { return Value(t, depth-1) })
	}
}

// drawMembers draws some of the keys, in some order, with a value for each.
func drawMembers(t *rapid.T, keys []string, value func(key string) any) Members {
	members := Members{}
	for _, key := range rapid.Permutation(keys).Draw(t, "keys")[:rapid.IntRange(0, min(5, len(keys))).Draw(t, "members")] {
		members = append(members, Member{key, value(key)})
	}
	return members
}

// drawElements draws a list of maps with the given keys and some members more.
func drawElements(t *rapid.T, keys []string, more []string, value func(key string) any) []any {
	list := make([]any, rapid.IntRange(0, 4).Draw(t, "elements"))
	for i := range list {
		element := drawMembers(t, more, value)
		for _, key := range keys {
			switch {
			case rapid.IntRange(0, 9).Draw(t, "missing") == 0:
			case key == "containerPort" || key == "port":
				element = append(element, Member{key, json.Number(fmt.Sprint(rapid.IntRange(79, 82).Draw(t, "port")))})
			case key == "protocol":
				element = append(element, Member{key, rapid.SampledFrom([]string{"TCP", "UDP"}).Draw(t, "protocol")})
			default:
				element = append(element, Member{key, drawName(t)})
			}
		}
		list[i] = element
	}
	return list
}

func container(t *rapid.T) func(string) any {
	return func(key string) any {
		switch key {
		case "env":
			return drawElements(t, []string{"name"}, []string{"value"}, func(string) any { return drawText(t) })
		case "ports":
			return drawElements(t, []string{"containerPort", "protocol"}, []string{"name", "hostPort"},
				func(string) any { return Value(t, 0) })
		case "volumeMounts":
			return drawElements(t, []string{"mountPath"}, []string{"name"}, func(string) any { return Value(t, 0) })
		case "restartPolicyRules":
			return []any{Members{{"exitCodes", Members{{"values", []any{drawNumber(t), drawNumber(t), drawText(t)}}}}}}
		default:
			return Value(t, 2)
		}
	}
}

func podSpec(t *rapid.T) Members {
	return drawMembers(t, []string{"containers", "initContainers", "volumes", "nodeName", "tolerations"}, func(key string) any {
		switch key {
		case "containers", "initContainers":
			return drawElements(t, []string{"name"},
				[]string{"env", "ports", "args", "image", "volumeMounts", "restartPolicyRules"}, container(t))
		case "volumes":
			return drawElements(t, []string{"name"}, []string{"emptyDir", "secret"}, func(string) any { return Value(t, 1) })
		default:
			return Value(t, 2)
		}
	})
}

// Body draws an object in the shape of the kind: "Pod", "Deployment",
// "Service", or anything else.
func Body(t *rapid.T, kind string) Members {
	var spec any
	switch kind {
	case "Pod":
		spec = podSpec(t)
	case "Deployment":
		template := Members{{"metadata", Value(t, 2)}, {"spec", podSpec(t)}}
		spec = Members{{"template", template}, {"replicas", drawNumber(t)}, {"paused", Value(t, 0)}}
	case "Service":
		spec = drawMembers(t, []string{"ports", "clusterIP", "clusterIPs", "selector", "ipFamilies"}, func(key string) any {
			if key == "ports" {
				return drawElements(t, []string{"port", "protocol"}, []string{"nodePort", "name", "targetPort"},
					func(string) any { return Value(t, 1) })
			}
			return Value(t, 2)
		})
	default:
		spec = Value(t, 4)
	}
	return Members{{"metadata", Value(t, 2)}, {"spec", spec}, {"data", Value(t, 2)}, {"status", Value(t, 1)}}
}

// Write writes a drawn object as JSON in a drawn style: white space, order of
// members and form of strings are drawn anew each time.
func Write(t *rapid.T, value any) []byte {
	var b strings.Builder
	write(t, &b, value)
	return []byte(b.String())
}

func write(t *rapid.T, b *strings.Builder, value any) {
	space := func() {
		b.WriteString(rapid.SampledFrom([]string{"", "", "", " ", "\n\t"}).Draw(t, "space"))
	}
	space()
	switch v := value.(type) {
	case Members:
		b.WriteByte('{')
		for i, m := range rapid.Permutation(v).Draw(t, "order") {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			writeString(t, b, m.Key)
			space()
			b.WriteByte(':')
			write(t, b, m.Value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			write(t, b, element)
		}
		b.WriteByte(']')
	case string:
		writeString(t, b, v)
	case json.Number:
		b.WriteString(string(v))
	case bool:
		fmt.Fprint(b, v)
	case nil:
		b.WriteString("null")
	default:
		t.Fatalf("cannot write %T", value)
	}
	space()
}

func writeString(t *rapid.T, b *strings.Builder, text string) {
	if !rapid.Bool().Draw(t, "escape all") {
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(encoded)
		return
	}
	b.WriteByte('"')
	for _, unit := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(b, `\u%04X`, unit)
	}
	b.WriteByte('"')
}
