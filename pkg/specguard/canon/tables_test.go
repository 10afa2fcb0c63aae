// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// tablesFile publishes the tables that are part of pl1 and pl2, for implementations in
// other languages. UPDATE_GOLDEN=1 writes it.
const tablesFile = "../../../docs/reference/canonical-hash-tables.json"

type publishedKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Type    typeID `json:"type"`
}

type publishedType struct {
	Members    map[string]typeID `json:"members,omitempty"`
	Others     typeID            `json:"others,omitempty"`
	List       string            `json:"list,omitempty"`
	Keys       []string          `json:"keys,omitempty"`
	References bool              `json:"references,omitempty"`
	Element    typeID            `json:"element,omitempty"`
}

type publishedRemoval struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Path    string `json:"path"`
	Unless  string `json:"unless,omitempty"`
	OnlyIf  string `json:"onlyIf,omitempty"`
}

type publishedTables struct {
	Algorithm Algorithm `json:"algorithm"`
	// Groups are those whose kinds are hashed by the algorithm; all others are by pl2.
	Groups   []string                 `json:"groups"`
	Kinds    []publishedKind          `json:"kinds"`
	Types    map[string]publishedType `json:"types"`
	Removals []publishedRemoval       `json:"removals"`
}

var modeNames = map[ListMode]string{Atomic: "atomic", Set: "set", Keyed: "keyed", KeyedOrdered: "keyedOrdered"}

func currentTables() publishedTables {
	tables := publishedTables{Algorithm: PL1, Groups: slices.Sorted(maps.Keys(ownGroups)), Types: map[string]publishedType{}}
	for id := range schemaTypes {
		for gvk, root := range kindTypes {
			if root == typeID(id) {
				tables.Kinds = append(tables.Kinds, publishedKind{gvk.Group, gvk.Version, gvk.Kind, root})
			}
		}
		if id == 0 {
			continue
		}
		t := &schemaTypes[id]
		published := publishedType{Others: t.values, Keys: t.keys, References: t.references, Element: t.element}
		for _, f := range t.fields {
			if published.Members == nil {
				published.Members = map[string]typeID{}
			}
			published.Members[f.name] = f.typ
		}
		if published.Members == nil && t.values == 0 {
			published.List = modeNames[t.mode]
		}
		tables.Types[strconv.Itoa(id)] = published
	}
	for _, r := range removals {
		for _, gvk := range r.kinds {
			tables.Removals = append(tables.Removals, publishedRemoval{
				gvk.Group, gvk.Version, gvk.Kind, "/" + strings.Join(escapePath(r.path), "/"), r.unless, r.onlyIf,
			})
		}
	}
	return tables
}

func escapePath(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = Field(name).String()
		if name == "*" {
			out[i] = Any().String()
		}
	}
	return out
}

func TestPublishedTables(t *testing.T) {
	got, err := json.MarshalIndent(currentTables(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	golden.Check(t, tablesFile, got)
}

// What the table says must be what paths say, so that a removal can be shown.
func TestRemovalsRemoveWhatTheirPathsName(t *testing.T) {
	for _, r := range currentTables().Removals {
		t.Run(r.Kind+r.Path, func(t *testing.T) {
			body := bodyWith(r.Path, r.OnlyIf)
			gvk := GVK{r.Group, r.Version, r.Kind}
			d, err := Parse([]byte(body), gvk)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(d.AppendCanonical(nil)); got != "{}" {
				t.Errorf("canonical form of %s is %s, want {}", body, got)
			}
			if r.Unless == "" {
				return
			}
			kept := bodyWith(r.Path, r.Unless)
			if d, err = Parse([]byte(kept), gvk); err != nil {
				t.Fatal(err)
			}
			if got := string(d.AppendCanonical(nil)); got != kept {
				t.Errorf("canonical form of %s is %s, want it kept", kept, got)
			}
		})
	}
}

// bodyWith is an object that holds nothing but a string at the path.
func bodyWith(path, value string) string {
	var head, tail bytes.Buffer
	for name := range strings.SplitSeq(path[1:], "/") {
		closing := "}"
		if name == "*" {
			head.WriteString("[")
			closing = "]"
		} else {
			head.Write(AppendString([]byte("{"), strings.NewReplacer("~1", "/", "~0", "~").Replace(name)))
			head.WriteString(":")
		}
		rest := tail.String()
		tail.Reset()
		tail.WriteString(closing + rest)
	}
	return head.String() + `"` + value + `"` + tail.String()
}

func TestEveryTypeOfTheTableIsInBounds(t *testing.T) {
	for id := range schemaTypes {
		ty := &schemaTypes[id]
		ids := []typeID{ty.values, ty.element}
		for _, f := range ty.fields {
			ids = append(ids, f.typ)
		}
		for _, ref := range ids {
			if int(ref) >= len(schemaTypes) || int(ref) == id && id != 0 {
				t.Errorf("type %d refers to type %d", id, ref)
			}
		}
		if len(ty.keys) > maxListKeys {
			t.Errorf("type %d has %d keys", id, len(ty.keys))
		}
	}
}
