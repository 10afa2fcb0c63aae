// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// fill draws each field of a kind: absent, or a value that the kind may have.
func fill(t *rapid.T, at reflect.Value) {
	switch kind := at.Type(); {
	case kind == reflect.TypeFor[metav1.Duration]():
		at.Set(reflect.ValueOf(metav1.Duration{Duration: time.Duration(rapid.IntRange(0, 1e8).Draw(t, "ms")) * time.Millisecond}))
	case kind == reflect.TypeFor[v1alpha1.Percentage]():
		at.Set(reflect.ValueOf(percentage(float64(rapid.IntRange(0, 10000).Draw(t, "basis points")) / 100)))
	case kind == reflect.TypeFor[v1alpha1.Toggle]():
		at.SetString(rapid.SampledFrom([]string{"", "Enabled", "Disabled"}).Draw(t, "toggle"))
	case vocabularies[kind] != nil:
		at.SetString(rapid.SampledFrom(append(vocabularies[kind], term{})).Draw(t, "enum").value)
	case kind.Kind() == reflect.String:
		at.SetString(rapid.StringMatching(`[a-z]{0,4}`).Draw(t, "text"))
	case kind.Kind() == reflect.Int32 || kind.Kind() == reflect.Int64:
		at.SetInt(int64(rapid.IntRange(0, 100).Draw(t, "number")))
	case kind.Kind() == reflect.Pointer:
		if rapid.Bool().Draw(t, "present") {
			at.Set(reflect.New(kind.Elem()))
			fill(t, at.Elem())
		}
	case kind.Kind() == reflect.Slice:
		for range rapid.IntRange(0, 2).Draw(t, "items") {
			item := reflect.New(kind.Elem()).Elem()
			fill(t, item)
			at.Set(reflect.Append(at, item))
		}
	case kind.Kind() == reflect.Map:
		if rapid.Bool().Draw(t, "entry") {
			value := reflect.New(kind.Elem()).Elem()
			fill(t, value)
			at.Set(reflect.MakeMap(kind))
			at.SetMapIndex(reflect.ValueOf("key").Convert(kind.Key()), value)
		}
	case kind.Kind() == reflect.Struct:
		for _, field := range at.Fields() {
			fill(t, field)
		}
	default:
		panic("cannot fill " + kind.String())
	}
}

// overTheWire sends a value as JSON.
func overTheWire[T any](t *rapid.T, value T) T {
	body, err := encode(value)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode[T](body)
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return got
}

func compare(t *rapid.T, want, got any, err error) {
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the spec that is read and written back differs (-want +got):\n%s", diff)
	}
}

func TestAPolicyThatIsReadAndWrittenBackIsUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p v1alpha1.RemediationPolicy
		fill(t, reflect.ValueOf(&p.Spec).Elem())
		sent := overTheWire(t, PolicyOf(&p, &Uids{}))
		got, err := sent.Spec()
		compare(t, p.Spec, got, err)
	})
}

func TestAStrategyThatIsReadAndWrittenBackIsUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s v1alpha1.RolloutStrategy
		fill(t, reflect.ValueOf(&s.Spec).Elem())
		sent := overTheWire(t, StrategyOf(&s))
		got, err := sent.Spec()
		compare(t, s.Spec, got, err)
	})
}

func TestAReleaseThatIsReadAndWrittenBackIsUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := v1alpha1.ABRelease{Spec: drawRelease(t)}
		sent := overTheWire(t, ReleaseOf(&r, &Uids{}))
		got, err := sent.Spec()
		compare(t, r.Spec, got, err)
	})
}

// drawRelease draws a spec that the API server takes, as far as names of variations go. Its stable
// variation is the first one: the order means nothing.
func drawRelease(t *rapid.T) v1alpha1.ABReleaseSpec {
	var spec v1alpha1.ABReleaseSpec
	fill(t, reflect.ValueOf(&spec).Elem())
	spec.Variations = append(spec.Variations, make([]v1alpha1.Variation, 2)...)[:2]
	spec.TrafficSplit.Percentages = map[string]v1alpha1.Percentage{}
	for i := range spec.Variations {
		name := fmt.Sprintf("v%d", i)
		spec.Variations[i].Name = v1alpha1.VariationName(name)
		spec.TrafficSplit.Percentages[name] = v1alpha1.Percent(int32(rapid.IntRange(0, 100).Draw(t, "percent")))
	}
	spec.Stable = spec.Variations[0].Name
	if m := spec.TrafficSplit.HeaderMatch; m != nil {
		m.Values = map[string]v1alpha1.VariationName{"beta": "v1"}
	}
	for i := range spec.Routers {
		for j := range spec.Routers[i].Services {
			spec.Routers[i].Services[j].Variation = spec.Variations[j].Name
		}
	}
	if s := spec.TrafficSplit.Sticky; s != nil && s.Header != "" {
		s.Cookie = ""
	}
	if rollout := spec.Rollout; rollout != nil {
		rollout.Control = nil // verbs have operations of their own
		if rollout.Strategy != nil {
			rollout.StrategyName = ""
			rollout.Strategy.Stages = append(rollout.Strategy.Stages, v1alpha1.RolloutStage{})
		}
	}
	return spec
}
