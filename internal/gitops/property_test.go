// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func objects() []Object { return []Object{*mutating(), *secret(), *lease()} }

// drawGaps leaves out some fields of some objects.
func drawGaps(r *rapid.T, all []Object) []Gap {
	var out []Gap
	for i := range all {
		left := rapid.SliceOfNDistinct(rapid.SampledFrom(all[i].Fields), 0, len(all[i].Fields), rapid.ID).Draw(r, all[i].Kind)
		slices.Sort(left)
		switch len(left) {
		case 0:
		case len(all[i].Fields):
			out = append(out, Gap{&all[i], []string{all[i].Parent}})
		default:
			out = append(out, Gap{&all[i], left})
		}
	}
	return out
}

// TestPaste_ClosesTheGaps: what a finding tells to paste makes the finding go
// away, and covers nothing that it was not written for.
func TestPaste_ClosesTheGaps(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		all := objects()
		gaps := drawGaps(r, all)
		option := rapid.Bool().Draw(r, "option")
		application := applicationOf(r, PasteArgoCD(gaps, option))
		if application.Respects != option || len(BrokenArgoCD(application.Rules)) > 0 {
			r.Errorf("option %v, broken %v", application.Respects, BrokenArgoCD(application.Rules))
		}
		judges := map[string]func(*Object) (Verdict, error){
			"Argo CD": func(o *Object) (Verdict, error) { return JudgeArgoCD(application.Rules, o) },
		}
		for _, kind := range []FluxKind{HelmRelease, Kustomization} {
			f := fluxOf(r, kind, PasteFlux(kind, gaps))
			if len(f.Broken()) > 0 {
				r.Errorf("%s: broken %v", kind, f.Broken())
			}
			judges[string(kind)] = f.Judge
		}
		for tool, judge := range judges {
			for i := range all {
				want := stillMissing(&all[i], gaps)
				if got, err := judge(&all[i]); err != nil || !slices.Equal(got.Missing, want) {
					r.Errorf("%s: of %s %v is missing (%v), want %v", tool, all[i].ID(), got.Missing, err, want)
				}
			}
		}
	})
}

// stillMissing is the complement of what was pasted.
func stillMissing(o *Object, gaps []Gap) []string {
	for _, gap := range gaps {
		if gap.Object != o {
			continue
		}
		if slices.Contains(gap.Pointers, o.Parent) {
			return nil
		}
		var left []string
		for _, field := range o.Fields {
			if !slices.Contains(gap.Pointers, field) {
				left = append(left, field)
			}
		}
		return left
	}
	return []string{o.Parent}
}

// TestMoreRules_NeverCoverLess: a tool carries out all of its rules.
func TestMoreRules_NeverCoverLess(t *testing.T) {
	rule := rapid.Custom(func(r *rapid.T) ArgoCDRule {
		return ArgoCDRule{
			Group:        rapid.SampledFrom([]string{"*", "", "admissionregistration.k8s.io", "apps"}).Draw(r, "group"),
			Kind:         rapid.SampledFrom([]string{"*", "Secret", "Mutating*", "Lease"}).Draw(r, "kind"),
			Name:         rapid.SampledFrom([]string{"", "plumbline", "other"}).Draw(r, "name"),
			JSONPointers: rapid.SliceOfN(rapid.SampledFrom([]string{"/data", "/spec", "/spec/renewTime", bundlePointer, "/data/ca.crt", "/webhooks/0", "/x"}), 0, 3).Draw(r, "pointers"),
		}
	})
	rapid.Check(t, func(r *rapid.T) {
		rules := rapid.SliceOfN(rule, 0, 3).Draw(r, "rules")
		more := append(slices.Clone(rules), rule.Draw(r, "another"))
		for _, o := range objects() {
			few, err := JudgeArgoCD(rules, &o)
			if err != nil {
				r.Fatal(err)
			}
			many, err := JudgeArgoCD(more, &o)
			if err != nil {
				r.Fatal(err)
			}
			if few.Covered() && !many.Covered() || !few.Covered() && len(fields(&o, many.Missing)) > len(fields(&o, few.Missing)) {
				r.Errorf("%s: %v with %v, %v with %v", o.ID(), few, rules, many, more)
			}
		}
	})
}

func fields(o *Object, pointers []string) []string {
	if slices.Contains(pointers, o.Parent) {
		return o.Fields
	}
	return pointers
}

// TestHas_AgreesWithRemove: a pointer leads to something exactly if there is
// something to remove.
func TestHas_AgreesWithRemove(t *testing.T) {
	document := []byte(`{"a":{"b":[{"c":1},{"c":null}],"x/y":{},"m~n":2},"0":[[3]]}`)
	token := rapid.SampledFrom([]string{"a", "b", "c", "0", "1", "2", "x~1y", "m~0n", "", "z"})
	rapid.Check(t, func(r *rapid.T) {
		pointer := "/" + strings.Join(rapid.SliceOfN(token, 1, 5).Draw(r, "tokens"), "/")
		var root any
		if err := json.Unmarshal(document, &root); err != nil {
			r.Fatal(err)
		}
		if removed := !bytes.Equal(remove(document, pointer), document); has(root, pointer) != removed {
			r.Errorf("%s: it is there: %v, something was removed: %v", pointer, has(root, pointer), removed)
		}
	})
}

// globTwin matches by trying out every length of every star. It knows what the
// generator below makes.
func globTwin(glob, text string) bool {
	switch {
	case glob == "":
		return text == ""
	case glob[0] == '*':
		for i := range len(text) + 1 {
			if globTwin(glob[1:], text[i:]) {
				return true
			}
		}
		return false
	case glob[0] == '{':
		end := strings.IndexByte(glob, '}')
		for option := range strings.SplitSeq(glob[1:end], ",") {
			if globTwin(option+glob[end+1:], text) {
				return true
			}
		}
		return false
	case text == "":
		return false
	case glob[0] == '[':
		end := strings.IndexByte(glob, ']')
		class := glob[1:end]
		in := strings.ContainsRune(strings.TrimPrefix(class, "!"), rune(text[0]))
		return in != strings.HasPrefix(class, "!") && globTwin(glob[end+1:], text[1:])
	default:
		return (glob[0] == '?' || glob[0] == text[0]) && globTwin(glob[1:], text[1:])
	}
}

func TestMatchGlob_AgreesWithItsTwin(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b", ".", "*", "**", "?", "[ab]", "[!a]", "{a,b.}", "{ab,*}", "+", "$"})
	rapid.Check(t, func(r *rapid.T) {
		glob := strings.Join(rapid.SliceOfN(part, 0, 5).Draw(r, "glob"), "")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", ".", "+", "$"}), 0, 5).Draw(r, "text"), "")
		if got, want := matchGlob(glob, text), globTwin(glob, text); got != want {
			r.Errorf("%q matches %q: %v, want %v", glob, text, got, want)
		}
	})
}

func TestMatchGlob_Escapes(t *testing.T) {
	for _, tc := range []struct {
		glob, text string
		want       bool
	}{
		{`\*`, "*", true}, {`\*`, "a", false}, {`a\`, `a\`, true}, {"[a-c]x", "bx", true}, {"[a-c]x", "dx", false},
		{"[!a-c]x", "dx", true}, {"[^a]", "^", true}, {"[^a]", "b", false}, {"[", "[", false}, {"{a", "a", true}, {"{a,b", "b", true}, {"a}", "a}", true}, {"a,b", "a,b", true},
	} {
		t.Run(fmt.Sprintf("%s on %s", tc.glob, tc.text), func(t *testing.T) {
			if got := matchGlob(tc.glob, tc.text); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
