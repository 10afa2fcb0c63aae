// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"bytes"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon/canontest"
)

type (
	members = canontest.Members
	member  = canontest.Member
)

var closureNames = []string{"a", "b", "c", "a-b", "é"}

// drawReference is what a reference may look like, fit or misfit.
func drawReference(t *rapid.T) any {
	out := members{}
	if rapid.IntRange(0, 9).Draw(t, "named") > 0 {
		out = append(out, member{Key: "name", Value: rapid.SampledFrom(closureNames).Draw(t, "name")})
	} else {
		out = append(out, member{Key: "name", Value: canontest.Value(t, 1)})
	}
	if rapid.Bool().Draw(t, "flag") {
		out = append(out, member{Key: "optional", Value: rapid.SampledFrom([]any{true, false, nil, "true"}).Draw(t, "optional")})
	}
	return out
}

func drawList(t *rapid.T, element func() any) []any {
	list := make([]any, rapid.IntRange(0, 3).Draw(t, "elements"))
	for i := range list {
		if rapid.IntRange(0, 15).Draw(t, "odd") == 0 {
			list[i] = canontest.Value(t, 1)
			continue
		}
		list[i] = element()
	}
	return list
}

func drawVolume(t *rapid.T) any {
	name := member{Key: "name", Value: rapid.SampledFrom([]string{"v", "w", "x"}).Draw(t, "volume")}
	if rapid.Bool().Draw(t, "projected") {
		return members{name, {Key: "projected", Value: members{{Key: "sources", Value: drawList(t, func() any {
			kind := rapid.SampledFrom([]string{"configMap", "secret"}).Draw(t, "source")
			return members{{Key: kind, Value: drawReference(t)}}
		})}}}}
	}
	return members{name, {Key: "configMap", Value: drawReference(t)}}
}

func drawContainer(t *rapid.T) any {
	return members{
		{Key: "name", Value: rapid.SampledFrom([]string{"app", "side"}).Draw(t, "container")},
		{Key: "envFrom", Value: drawList(t, func() any { return members{{Key: "configMapRef", Value: drawReference(t)}} })},
		{Key: "env", Value: drawList(t, func() any {
			return members{{Key: "name", Value: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "variable")},
				{Key: "valueFrom", Value: members{{Key: "configMapKeyRef", Value: drawReference(t)}}}}
		})},
	}
}

func drawWorkload(t *rapid.T) (members, canon.GVK) {
	spec := members{
		{Key: "volumes", Value: drawList(t, func() any { return drawVolume(t) })},
		{Key: "containers", Value: drawList(t, func() any { return drawContainer(t) })},
		{Key: "initContainers", Value: drawList(t, func() any { return drawContainer(t) })},
		{Key: "ephemeralContainers", Value: drawList(t, func() any { return drawContainer(t) })},
	}
	if rapid.Bool().Draw(t, "pod") {
		return members{{Key: "spec", Value: spec}}, pod
	}
	template := members{{Key: "metadata", Value: canontest.Value(t, 1)}, {Key: "spec", Value: spec}}
	return members{{Key: "spec", Value: members{{Key: "template", Value: template}}}}, deployment
}

func drawConfigMaps(t *rapid.T) map[string]canon.ConfigMap {
	text := rapid.SampledFrom([]string{"", "k", "kk", "k\n", "\x00", "x"})
	out := map[string]canon.ConfigMap{}
	for _, name := range closureNames {
		m := canon.ConfigMap{State: canon.ConfigMapAbsent}
		if rapid.Bool().Draw(t, "present") {
			m = canon.ConfigMap{State: canon.ConfigMapPresent, Data: rapid.MapOfN(text, text, 0, 3).Draw(t, "data"), BinaryData: map[string][]byte{}}
			for key, value := range rapid.MapOfN(text, text, 0, 2).Draw(t, "binaryData") {
				m.BinaryData[key] = []byte(value)
			}
		}
		out[name] = m
	}
	return out
}

var closureExclusions = []string{
	"/nosuch", "/spec/template/spec/volumes/[name=v]", "/spec/volumes", "/spec/template/spec/containers/*/env", "/spec/containers/[name=app]",
	"/spec/template/spec/initContainers/*/envFrom/0", "/spec/template/spec/volumes/*/configMap/optional", "/spec/template/metadata",
}

func TestTheClosureEqualsTheNaiveTwin(t *testing.T) {
	key, err := canon.NewClosureKey(closureSecret)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		object, gvk := drawWorkload(t)
		body, configMaps := canontest.Write(t, object), drawConfigMaps(t)
		text := rapid.SampledFrom(closureExclusions).Draw(t, "exclude")
		exclude, err := canon.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		d, err := canon.Parse(body, gvk)
		if err != nil {
			t.Fatal(err)
		}
		template := naiveTemplate(d.AppendCanonical(nil, exclude), gvk)
		checkClosure(t, d, key, template, configMaps, exclude)
		d.Release()
	})
}

// checkClosure compares references and digest, or their absence, with the twin.
func checkClosure(t interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}, d *canon.Document, key canon.ClosureKey, template []byte, configMaps map[string]canon.ConfigMap, exclude canon.Path,
) {
	t.Helper()
	references, err := d.ConfigMapReferences(exclude)
	digest, digestErr := d.Closure(key, configMaps, exclude)
	if template == nil {
		if !errors.Is(err, canon.ErrNoPodTemplate) || !errors.Is(digestErr, canon.ErrNoPodTemplate) {
			t.Fatalf("errors are %v and %v, want no pod template", err, digestErr)
		}
		return
	}
	if err != nil {
		t.Fatalf("listing references: %v", err)
	}
	want, got, known := naiveReferences(template), map[string]bool{}, true
	for _, r := range references {
		got[r.Name] = r.Optional
		known = known && configMaps[r.Name].State != canon.ConfigMapUnknown
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != len(references) {
		t.Errorf("references of %s (-twin +got):\n%s", template, diff)
	}
	if !known {
		if _, ok := errors.AsType[*canon.UnknownConfigMapError](digestErr); !ok || digest != "" {
			t.Fatalf("digest is %q, error %v, want an unknown ConfigMap", digest, digestErr)
		}
		return
	}
	if digestErr != nil {
		t.Fatalf("digesting: %v", digestErr)
	}
	if want := naiveClosure(closureSecret, naiveMessage(template, configMaps)); string(digest) != want {
		t.Errorf("digest is %s, want %s", digest, want)
	}
}

func TestTheStyleOfATemplateDoesNotMatterToTheClosure(t *testing.T) {
	key := closureKey(t, closureSecret)
	rapid.Check(t, func(t *rapid.T) {
		object, gvk := drawWorkload(t)
		configMaps := drawConfigMaps(t)
		digestOf := func(body []byte) canon.ClosureDigest {
			d, err := canon.Parse(body, gvk)
			if err != nil {
				t.Fatal(err)
			}
			digest, err := d.Closure(key, configMaps)
			if _, unknown := errors.AsType[*canon.UnknownConfigMapError](err); err != nil && !unknown {
				t.Fatal(err)
			}
			return digest
		}
		a, b := canontest.Write(t, object), canontest.Write(t, object)
		if x, y := digestOf(a), digestOf(b); x != y {
			t.Errorf("digests are %s and %s of\n%s\n%s", x, y, a, b)
		}
	})
}

// Two closures have one digest exactly when they are alike in every part.
func TestTheClosureTellsContentsApart(t *testing.T) {
	key := closureKey(t, closureSecret)
	rapid.Check(t, func(t *rapid.T) {
		d, err := canon.Parse([]byte(volumesOf(closureNames...)), deployment)
		if err != nil {
			t.Fatal(err)
		}
		a := drawConfigMaps(t)
		b := maps.Clone(a)
		name := rapid.SampledFrom(closureNames).Draw(t, "edited")
		b[name] = drawConfigMaps(t)[name]
		x, errA := d.Closure(key, a)
		y, errB := d.Closure(key, b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		same := a[name].State == b[name].State && maps.Equal(a[name].Data, b[name].Data) &&
			maps.EqualFunc(a[name].BinaryData, b[name].BinaryData, bytes.Equal)
		if (x == y) != same {
			t.Errorf("contents alike: %v, digests %s and %s of\n%v\n%v", same, x, y, a[name], b[name])
		}
	})
}

// FuzzClosure checks references and digest of any body against the twin, with
// one ConfigMap known and all others absent or not read.
func FuzzClosure(f *testing.F) {
	f.Add([]byte(volumesOf("a", "b")), "", "a", "k", []byte("x"), uint8(2))
	f.Add([]byte(container(`"env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"a","optional":true}}}]`)),
		"/spec/template/spec/containers/*/env", "a", "k", []byte("\x00"), uint8(1))
	f.Add([]byte(`{"spec":{"initContainers":[{"envFrom":[{"configMapRef":{"name":"a"}}]}]}}`), "/spec/x", "b", "", []byte{}, uint8(0))
	f.Add([]byte(`{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"volumes":[{"projected":{"sources":[{"configMap":{"name":"a"}}]}}]}}}}}}`),
		"/nosuch", "a", "k", []byte("x"), uint8(2))
	f.Fuzz(func(t *testing.T, body []byte, text, name, entry string, value []byte, state uint8) {
		exclude, err := canon.ParsePath(text)
		if err != nil {
			return
		}
		known := canon.ConfigMap{State: canon.ConfigMapState(state % 3), Data: map[string]string{entry: string(value)}, BinaryData: map[string][]byte{entry: value}}
		for _, gvk := range []canon.GVK{deployment, pod, cronJob, custom} {
			d, err := canon.Parse(body, gvk)
			if err != nil {
				return
			}
			template := naiveTemplate(d.AppendCanonical(nil, exclude), gvk)
			configMaps := map[string]canon.ConfigMap{}
			if template != nil {
				references := naiveReferences(template)
				if len(references) > canon.MaxConfigMaps {
					return
				}
				for reference := range references {
					configMaps[reference] = absent
				}
			}
			configMaps[name] = known
			checkClosure(t, d, closureKey(t, closureSecret), template, configMaps, exclude)
			d.Release()
		}
	})
}
