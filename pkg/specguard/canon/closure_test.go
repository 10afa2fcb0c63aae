// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var (
	cronJob = canon.GVK{Group: "batch", Version: "v1", Kind: "CronJob"}
	// closureSecret is also published, in the test vectors.
	closureSecret = []byte("0123456789abcdef0123456789ABCDEF")
)

type configMaps map[string]canon.ConfigMap

func present(data map[string]string) canon.ConfigMap {
	return canon.ConfigMap{State: canon.ConfigMapPresent, Data: data}
}

func presentBinary(data map[string][]byte) canon.ConfigMap {
	return canon.ConfigMap{State: canon.ConfigMapPresent, BinaryData: data}
}

var absent = canon.ConfigMap{State: canon.ConfigMapAbsent}

func closureKey(tb testing.TB, secret []byte) canon.ClosureKey {
	tb.Helper()
	key, err := canon.NewClosureKey(secret)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func closure(tb testing.TB, gvk canon.GVK, body string, maps configMaps, exclude ...canon.Path) canon.ClosureDigest {
	tb.Helper()
	d := parse(tb, []byte(body), gvk)
	digest, err := d.Closure(closureKey(tb, closureSecret), maps, exclude...)
	if err != nil {
		tb.Fatalf("closure of %s: %v", body, err)
	}
	return digest
}

// volumesOf are volumes of the named ConfigMaps.
func volumesOf(names ...string) string {
	volumes := make([]string, len(names))
	for i, name := range names {
		volumes[i] = fmt.Sprintf(`{"name":"v%d","configMap":{"name":%q}}`, i, name)
	}
	return podSpec(`"volumes":[` + strings.Join(volumes, ",") + `]`)
}

func TestReferencesAreFoundWhereverATemplateHasThem(t *testing.T) {
	const pods = `"volumes":[{"name":"v","configMap":{"name":"volume"}},{"name":"p","projected":{"sources":[` +
		`{"secret":{"name":"not-this"}},{"configMap":{"name":"projected","optional":true}}]}}],` +
		`"initContainers":[{"name":"i","envFrom":[{"configMapRef":{"name":"init-from"}}],"env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"init-key","key":"k"}}}]}],` +
		`"containers":[{"name":"c","envFrom":[{"secretRef":{"name":"not-this"}},{"configMapRef":{"name":"from","optional":true}}],` +
		`"env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"key","key":"k"}}},{"name":"B","valueFrom":{"secretKeyRef":{"name":"not-this","key":"k"}}}]}],` +
		`"ephemeralContainers":[{"name":"e","envFrom":[{"configMapRef":{"name":"debug-from"}}],"env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"debug-key","key":"k"}}}]}]`
	want := []canon.ConfigMapReference{
		{Name: "debug-from"}, {Name: "debug-key"}, {Name: "from", Optional: true}, {Name: "init-from"},
		{Name: "init-key"}, {Name: "key"}, {Name: "projected", Optional: true}, {Name: "volume"},
	}
	template := `{"metadata":{"labels":{"a":"b"}},"spec":{` + pods + `}}`
	for name, tc := range map[string]struct {
		gvk  canon.GVK
		body string
	}{
		"Pod":                   {pod, `{"spec":{` + pods + `}}`},
		"PodTemplate":           {canon.GVK{Version: "v1", Kind: "PodTemplate"}, `{"template":` + template + `}`},
		"ReplicationController": {canon.GVK{Version: "v1", Kind: "ReplicationController"}, `{"spec":{"template":` + template + `}}`},
		"Deployment":            {deployment, `{"spec":{"template":` + template + `}}`},
		"ReplicaSet":            {canon.GVK{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, `{"spec":{"template":` + template + `}}`},
		"DaemonSet":             {canon.GVK{Group: "apps", Version: "v1", Kind: "DaemonSet"}, `{"spec":{"template":` + template + `}}`},
		"StatefulSet":           {statefulSet, `{"spec":{"template":` + template + `}}`},
		"Job":                   {job, `{"spec":{"template":` + template + `}}`},
		"CronJob":               {cronJob, `{"spec":{"jobTemplate":{"spec":{"template":` + template + `}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(t, []byte(tc.body), tc.gvk).ConfigMapReferences()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReferencesOfOddTemplates(t *testing.T) {
	for name, tc := range map[string]struct {
		body    string
		exclude []string
		want    []canon.ConfigMapReference
	}{
		"no spec":                           {`{"spec":{"template":{}}}`, nil, nil},
		"no references":                     {podSpec(`"containers":[{"name":"a"}]`), nil, nil},
		"one name twice comes once":         {volumesOf("a", "a"), nil, []canon.ConfigMapReference{{Name: "a"}}},
		"names come in the order of bytes":  {volumesOf("b", "a-", "a"), nil, []canon.ConfigMapReference{{Name: "a"}, {Name: "a-"}, {Name: "b"}}},
		"optional here, required there":     {podSpec(`"volumes":[{"name":"x","configMap":{"name":"a","optional":true}},{"name":"y","configMap":{"name":"a"}}]`), nil, []canon.ConfigMapReference{{Name: "a"}}},
		"required first, optional later":    {podSpec(`"volumes":[{"name":"x","configMap":{"name":"a"}},{"name":"y","configMap":{"name":"a","optional":true}}]`), nil, []canon.ConfigMapReference{{Name: "a"}}},
		"optional in text is not optional":  {podSpec(`"volumes":[{"name":"x","configMap":{"name":"a","optional":"true"}}]`), nil, []canon.ConfigMapReference{{Name: "a"}}},
		"a name with an escape":             {podSpec(`"volumes":[{"name":"x","configMap":{"name":"\u0061"}}]`), nil, []canon.ConfigMapReference{{Name: "a"}}},
		"no name, empty name, other name":   {podSpec(`"volumes":[{"name":"x","configMap":{}},{"name":"y","configMap":{"name":""}},{"name":"z","configMap":{"name":1}}]`), nil, nil},
		"shapes that do not fit":            {podSpec(`"volumes":{"configMap":{"name":"a"}},"containers":[[],1,{"env":{},"envFrom":[null,{"configMapRef":[]}]}]`), nil, nil},
		"an excluded volume does not count": {volumesOf("a", "b"), []string{"/spec/template/spec/volumes/[name=v0]"}, []canon.ConfigMapReference{{Name: "b"}}},
		"an excluded name does not count":   {volumesOf("a"), []string{"/spec/template/spec/volumes/*/configMap/name"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			paths := make([]canon.Path, len(tc.exclude))
			for i := range tc.exclude {
				paths[i] = path(t, tc.exclude[i])
			}
			got, err := parse(t, []byte(tc.body), deployment).ConfigMapReferences(paths...)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}

type closureSide struct {
	body string
	maps configMaps
}

// The edits of UT-HASH's kind, for what the template refers to.
func TestWhatChangesTheClosure(t *testing.T) {
	a := volumesOf("a")
	of := func(data map[string]string) closureSide { return closureSide{a, configMaps{"a": present(data)}} }
	ab := volumesOf("a", "b")
	for name, pair := range map[string][2]closureSide{
		"a byte moved from a value to its key":        {of(map[string]string{"k": "xy"}), of(map[string]string{"kx": "y"})},
		"a byte moved from a value to the next key":   {of(map[string]string{"a": "1b", "c": ""}), of(map[string]string{"a": "1", "bc": ""})},
		"a separator in a value that looks like keys": {of(map[string]string{"a": "1\nd:b=2"}), of(map[string]string{"a": "1", "b": "2"})},
		"a byte moved to the neighboring ConfigMap": {
			{ab, configMaps{"a": present(map[string]string{"k": "xy"}), "b": present(map[string]string{"k": ""})}},
			{ab, configMaps{"a": present(map[string]string{"k": "x"}), "b": present(map[string]string{"k": "y"})}},
		},
		"an entry moved to the neighboring ConfigMap": {
			{ab, configMaps{"a": present(map[string]string{"k": "x"}), "b": present(nil)}},
			{ab, configMaps{"a": present(nil), "b": present(map[string]string{"k": "x"})}},
		},
		"a ConfigMap renamed with the same content": {
			{a, configMaps{"a": present(map[string]string{"k": "x"})}},
			{volumesOf("b"), configMaps{"b": present(map[string]string{"k": "x"})}},
		},
		"absent and empty":          {of(nil), {a, configMaps{"a": absent}}},
		"absent and a look-alike":   {of(map[string]string{"__sentinel__": "__absent:a__"}), {a, configMaps{"a": absent}}},
		"a value changed":           {of(map[string]string{"k": "x"}), of(map[string]string{"k": "y"})},
		"a key that came, empty":    {of(map[string]string{"k": "x"}), of(map[string]string{"k": "x", "l": ""})},
		"text and the same as data": {of(map[string]string{"k": "x"}), {a, configMaps{"a": presentBinary(map[string][]byte{"k": []byte("x")})}}},
		"the template":              {of(nil), {strings.Replace(a, `"v0"`, `"v1"`, 1), configMaps{"a": present(nil)}}},
		"a reference that came":     {of(nil), {ab, configMaps{"a": present(nil), "b": present(nil)}}},
		"a reference made optional": {of(nil), {strings.Replace(a, `"name":"a"`, `"name":"a","optional":true`, 1), configMaps{"a": present(nil)}}},
	} {
		t.Run(name, func(t *testing.T) {
			x, y := closure(t, deployment, pair[0].body, pair[0].maps), closure(t, deployment, pair[1].body, pair[1].maps)
			if x == y {
				t.Errorf("both have %s", x)
			}
		})
	}
}

func TestWhatKeepsTheClosure(t *testing.T) {
	ab := configMaps{"a": present(map[string]string{"k": "x"}), "b": absent}
	want := closure(t, deployment, podSpec(`"volumes":[{"name":"x","configMap":{"name":"a"}},{"name":"y","configMap":{"name":"b"}}]`), ab)
	more := maps.Clone(ab)
	more["c"] = canon.ConfigMap{}
	for name, side := range map[string]closureSide{
		"the order of references": {podSpec(`"volumes":[{"name":"y","configMap":{"name":"b"}},{"name":"x","configMap":{"name":"a"}}]`), ab},
		"the style of the body":   {podSpec(` "volumes" : [{"configMap":{"name":"\u0061"},"name":"x"},{"name":"y","z":null,"configMap":{"name":"b"}}]`), ab},
		"what is outside of the template": {
			`{"metadata":{"name":"n"},"spec":{"replicas":3,` + strings.TrimPrefix(podSpec(`"volumes":[{"name":"x","configMap":{"name":"a"}},{"name":"y","configMap":{"name":"b"}}]`), `{"spec":{`), ab,
		},
		"a ConfigMap that nothing refers to, even unknown": {podSpec(`"volumes":[{"name":"x","configMap":{"name":"a"}},{"name":"y","configMap":{"name":"b"}}]`), more},
	} {
		t.Run(name, func(t *testing.T) {
			if got := closure(t, deployment, side.body, side.maps); got != want {
				t.Errorf("digest is %s, want %s", got, want)
			}
		})
	}
	t.Run("an empty map and none", func(t *testing.T) {
		x := closure(t, deployment, volumesOf("a"), configMaps{"a": present(nil)})
		y := closure(t, deployment, volumesOf("a"), configMaps{"a": {State: canon.ConfigMapPresent, Data: map[string]string{}, BinaryData: map[string][]byte{}}})
		if x != y {
			t.Errorf("digests are %s and %s", x, y)
		}
	})
	t.Run("content left behind in an absent one", func(t *testing.T) {
		x := closure(t, deployment, volumesOf("a"), configMaps{"a": absent})
		y := closure(t, deployment, volumesOf("a"), configMaps{"a": {State: canon.ConfigMapAbsent, Data: map[string]string{"k": "x"}}})
		if x != y {
			t.Errorf("digests are %s and %s", x, y)
		}
	})
}

func TestAnExcludedReferenceNeedsNotBeKnown(t *testing.T) {
	exclude := path(t, "/spec/template/spec/volumes/[name=v1]")
	got := closure(t, deployment, volumesOf("a", "b"), configMaps{"a": present(nil)}, exclude)
	if want := closure(t, deployment, volumesOf("a"), configMaps{"a": present(nil)}); got != want {
		t.Errorf("digest is %s, want that of the template without the volume, %s", got, want)
	}
}

func TestWhatHasNoClosure(t *testing.T) {
	names := make([]string, canon.MaxConfigMaps+1)
	for i := range names {
		names[i] = fmt.Sprintf("m%d", i)
	}
	for name, tc := range map[string]struct {
		gvk     canon.GVK
		body    string
		maps    configMaps
		exclude string
		want    error
	}{
		"a kind without pods":             {gvk: custom, body: podSpec(""), want: canon.ErrNoPodTemplate},
		"another version of a kind":       {gvk: canon.GVK{Group: "apps", Version: "v1beta1", Kind: "Deployment"}, body: podSpec(""), want: canon.ErrNoPodTemplate},
		"no template":                     {gvk: deployment, body: `{"spec":{}}`, want: canon.ErrNoPodTemplate},
		"a template of null":              {gvk: deployment, body: `{"spec":{"template":null}}`, want: canon.ErrNoPodTemplate},
		"a template that is a list":       {gvk: deployment, body: `{"spec":{"template":[]}}`, want: canon.ErrNoPodTemplate},
		"a template that is excluded":     {gvk: deployment, body: podSpec(`"a":1`), exclude: "/spec/template", want: canon.ErrNoPodTemplate},
		"a ConfigMap that is not given":   {gvk: deployment, body: volumesOf("a"), want: &canon.UnknownConfigMapError{Name: "a"}},
		"a ConfigMap that is unknown":     {gvk: deployment, body: volumesOf("b", "a"), maps: configMaps{"a": present(nil), "b": {Data: map[string]string{"k": "x"}}}, want: &canon.UnknownConfigMapError{Name: "b"}},
		"a ConfigMap of no known state":   {gvk: deployment, body: volumesOf("a"), maps: configMaps{"a": {State: 99}}, want: &canon.UnknownConfigMapError{Name: "a"}},
		"the first of several unknown":    {gvk: deployment, body: volumesOf("b", "a"), want: &canon.UnknownConfigMapError{Name: "a"}},
		"an optional one that is unknown": {gvk: deployment, body: podSpec(`"volumes":[{"name":"x","configMap":{"name":"a","optional":true}}]`), want: &canon.UnknownConfigMapError{Name: "a"}},
		"too many references":             {gvk: deployment, body: volumesOf(names...), want: canon.ErrClosureTooLarge},
		"too much text":                   {gvk: deployment, body: volumesOf("a"), maps: configMaps{"a": present(map[string]string{"k": strings.Repeat("x", canon.MaxConfigMapBytes)})}, want: canon.ErrClosureTooLarge},
		"too much binary data":            {gvk: deployment, body: volumesOf("a"), maps: configMaps{"a": presentBinary(map[string][]byte{"k": make([]byte, canon.MaxConfigMapBytes)})}, want: canon.ErrClosureTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			var exclude []canon.Path
			if tc.exclude != "" {
				exclude = append(exclude, path(t, tc.exclude))
			}
			got, err := parse(t, []byte(tc.body), tc.gvk).Closure(closureKey(t, closureSecret), tc.maps, exclude...)
			if got != "" {
				t.Errorf("digest is %s, want none", got)
			}
			if want, ok := errors.AsType[*canon.UnknownConfigMapError](tc.want); ok {
				unknown, _ := errors.AsType[*canon.UnknownConfigMapError](err)
				if diff := cmp.Diff(want, unknown); diff != "" {
					t.Errorf("error is %v (-want +got):\n%s", err, diff)
				}
			} else if !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

func TestAConfigMapAtTheBoundHasAClosure(t *testing.T) {
	closure(t, deployment, volumesOf("a"), configMaps{"a": present(map[string]string{"k": strings.Repeat("x", canon.MaxConfigMapBytes-1)})})
}

func TestClosureKeys(t *testing.T) {
	t.Run("a short secret is refused", func(t *testing.T) {
		if _, err := canon.NewClosureKey(closureSecret[1:]); err == nil {
			t.Error("no error")
		}
	})
	t.Run("the zero key is refused", func(t *testing.T) {
		if got, err := parse(t, []byte(podSpec("")), deployment).Closure(canon.ClosureKey{}, nil); err == nil {
			t.Errorf("digest is %s", got)
		}
	})
	t.Run("another secret gives another digest, and the two cannot be compared", func(t *testing.T) {
		d := parse(t, []byte(podSpec("")), deployment)
		other, err := d.Closure(closureKey(t, append([]byte("x"), closureSecret...)), nil)
		if err != nil {
			t.Fatal(err)
		}
		one := closure(t, deployment, podSpec(""), nil)
		if got := canon.Compare(one, one, other); got != canon.StandingUnknown {
			t.Errorf("standing is %v, want unknown", got)
		}
	})
	t.Run("the secret is copied", func(t *testing.T) {
		secret := append([]byte(nil), closureSecret...)
		key := closureKey(t, secret)
		clear(secret)
		got, err := parse(t, []byte(podSpec("")), deployment).Closure(key, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := closure(t, deployment, podSpec(""), nil); got != want {
			t.Errorf("digest is %s, want %s", got, want)
		}
	})
	t.Run("no usual way of printing shows the secret", func(t *testing.T) {
		key := closureKey(t, closureSecret)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			text := fmt.Sprintf(verb, key)
			if strings.Contains(text, string(closureSecret)) || strings.Contains(text, fmt.Sprintf("%x", closureSecret)) {
				t.Errorf("%s prints %s", verb, text)
			}
		}
	})
}
