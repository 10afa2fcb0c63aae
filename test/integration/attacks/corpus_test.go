// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

// wantEdits is how many changes of meaning are tried at least.
const wantEdits = 200

// edit is one change of a spec, done in place.
type edit struct {
	name string
	do   func(spec map[string]any)
}

// ordered are the lists of a pod in which the order means something: the first
// argument is the first, and what comes later in env may refer to what came
// before.
var ordered = []string{
	"args", "command", "env", "envFrom", "initContainers", "tolerations", "nodeSelectorTerms", "values", "searches", "nameservers",
	"supplementalGroups", "sysctls", "add", "httpHeaders", "items", "sources", "options", "preferredDuringSchedulingIgnoredDuringExecution",
}

// editsOf lists every change of one place: each value changed, each key and each
// element removed, and each list turned around in which the order counts.
func editsOf(spec map[string]any) []edit {
	var all []edit
	add := func(name string, path []string, change func(holder any, last string) any) {
		all = append(all, edit{name, func(spec map[string]any) { rewrite(spec, path, change) }})
	}
	var walk func(path []string, value any)
	walk = func(path []string, value any) {
		place := "/" + strings.Join(path, "/")
		if len(path) > 0 {
			add("remove "+place, path, remove)
		}
		switch v := value.(type) {
		case map[string]any:
			for _, key := range sortedKeys(v) {
				walk(append(slices.Clone(path), key), v[key])
			}
		case []any:
			if len(v) > 1 && slices.Contains(ordered, path[len(path)-1]) {
				add("turn around "+place, path, replaceBy(turnedAround))
			}
			for i := range v {
				walk(append(slices.Clone(path), strconv.Itoa(i)), v[i])
			}
		default:
			add("change "+place, path, replaceBy(changed))
		}
	}
	walk(nil, spec)
	return all
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// rewrite follows a path to the holder of its last step, and puts what change
// makes of that holder in the holder's place.
func rewrite(value any, path []string, change func(holder any, last string) any) any {
	if len(path) == 1 {
		return change(value, path[0])
	}
	switch v := value.(type) {
	case map[string]any:
		v[path[0]] = rewrite(v[path[0]], path[1:], change)
	case []any:
		i, _ := strconv.Atoi(path[0]) // made by walk
		v[i] = rewrite(v[i], path[1:], change)
	}
	return value
}

func remove(holder any, last string) any {
	switch h := holder.(type) {
	case map[string]any:
		delete(h, last)
	case []any:
		i, _ := strconv.Atoi(last) // made by walk
		return slices.Delete(h, i, i+1)
	}
	return holder
}

func replaceBy(f func(any) any) func(any, string) any {
	return func(holder any, last string) any {
		switch h := holder.(type) {
		case map[string]any:
			h[last] = f(h[last])
		case []any:
			i, _ := strconv.Atoi(last) // made by walk
			h[i] = f(h[i])
		}
		return holder
	}
}

func turnedAround(v any) any {
	turned := slices.Clone(v.([]any))
	slices.Reverse(turned)
	return turned
}

// changed is another value of the same type, as near as it gets.
func changed(v any) any {
	switch v := v.(type) {
	case bool:
		return !v
	case int64:
		return v + 1
	case float64:
		return v + 1
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			return strconv.Itoa(n + 1)
		}
		return v + "x"
	default:
		return "x"
	}
}

func richWorkload(t testing.TB, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile("testdata/rich.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func specOf(o *unstructured.Unstructured) map[string]any { return o.Object["spec"].(map[string]any) }

// S9: no change of meaning hides in a place that nobody looks at. Each edit that
// the API server stores as something else than before is made to an object of its
// own, by somebody who is not trusted; what is missed is listed.
func TestOfTwoHundredChangesOfMeaningNoneIsMissed(t *testing.T) {
	p := newPlace(t)
	p.guard()
	edits := p.stored()
	if len(edits) < wantEdits {
		t.Fatalf("%d edits are stored as a change, want %d at least", len(edits), wantEdits)
	}
	name := func(i int) string { return fmt.Sprintf("rich-%d", i) }
	pipeline, stranger := as(t, ci), as(t, mallory)
	p.each(len(edits), func(i int) error { return pipeline.Create(t.Context(), richWorkload(t, p.namespace, name(i))) })
	p.allAre(len(edits), v1alpha1.StateInSync)
	p.each(len(edits), func(i int) error {
		o := richWorkload(t, p.namespace, name(i))
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		edits[i].do(specOf(o))
		return stranger.Update(t.Context(), o)
	})
	p.witness() // whatever is not found by now is missed, but for workers that are still at it
	missed := 0
	for i, e := range edits {
		b, ok := p.foundSoon(name(i))
		if !ok {
			missed++
			t.Errorf("missed: %s: %s", e.name, guarded.Describe(b))
			continue
		}
		for _, f := range b.Status.Findings {
			if f.Actor.User != mallory || f.Actor.Class != v1alpha1.ActorUntrusted {
				t.Errorf("%s: %s by %s (%s)", e.name, f.Path, f.Actor.User, f.Actor.Class)
			}
		}
	}
	t.Logf("%d edits, %d missed", len(edits), missed)
}

// foundSoon tells whether an object is found to have drifted, within seconds.
func (p *place) foundSoon(name string) (b *v1alpha1.Baseline, ok bool) {
	p.t.Helper()
	err := waits.Until(p.t.Context(), 5*time.Second, name+" is found to have drifted", func(context.Context) (err error) {
		b, err = p.baseline(name) //nolint:contextcheck // a place uses that of its test
		if err == nil && (b.Status.State != v1alpha1.StateDrifted || len(b.Status.Findings) == 0) {
			err = errors.New(guarded.Describe(b))
		}
		return err
	})
	if b == nil {
		p.t.Fatal(err)
	}
	return b, err == nil
}

// stored tries every edit without keeping it, and gives those that the API server
// takes and stores as another spec.
func (p *place) stored() []edit {
	p.t.Helper()
	base := richWorkload(p.t, p.namespace, "base")
	p.must(as(p.t, ci).Create(p.t.Context(), base))
	all := editsOf(specOf(base))
	keep := make([]bool, len(all))
	stranger := as(p.t, mallory)
	p.each(len(all), func(i int) error {
		tried := base.DeepCopy()
		all[i].do(specOf(tried))
		err := stranger.Update(p.t.Context(), tried, client.DryRunAll)
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			return nil
		}
		keep[i] = err == nil && !cmp.Equal(specOf(base), specOf(tried))
		return err
	})
	var kept []edit
	for i, e := range all {
		if keep[i] {
			kept = append(kept, e)
		}
	}
	p.t.Logf("%d edits, of which the API server stores %d as a change", len(all), len(kept))
	return kept
}

// each does something for 0 to n-1, a few at a time.
func (p *place) each(n int, do func(int) error) {
	p.t.Helper()
	var group sync.WaitGroup
	next := make(chan int)
	for range 8 {
		group.Go(func() {
			for i := range next {
				if err := do(i); err != nil && p.t.Context().Err() == nil {
					p.t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	if p.t.Failed() {
		p.t.FailNow()
	}
}

// allAre waits until that many Baselines of the corpus are in a state.
func (p *place) allAre(n int, state v1alpha1.DriftState) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("%d objects are %s", n, state), func() error {
		var list v1alpha1.BaselineList
		if err := admin.List(context.Background(), &list, client.InNamespace(p.namespace)); err != nil {
			return err
		}
		found := 0
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Spec.Target.Name, "rich-") && list.Items[i].Status.State == state {
				found++
			}
		}
		if found != n {
			return fmt.Errorf("%d are", found)
		}
		return nil
	})
}
