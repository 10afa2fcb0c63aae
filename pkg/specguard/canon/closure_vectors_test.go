// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

type closureVector struct {
	Name       string            `json:"name"`
	Group      string            `json:"group"`
	Version    string            `json:"version"`
	Kind       string            `json:"kind"`
	Body       string            `json:"body"`
	Exclude    []string          `json:"exclude,omitempty"`
	Key        []byte            `json:"keyBase64"`
	ConfigMaps []configMapVector `json:"configMaps"`
	// Of an object without a closure, only Error.
	References []referenceVector   `json:"references,omitempty"`
	Message    []byte              `json:"messageBase64,omitempty"`
	Digest     canon.ClosureDigest `json:"digest,omitempty"`
	Error      string              `json:"error,omitempty"`
}

type configMapVector struct {
	Name       string            `json:"name"`
	State      string            `json:"state"`
	Data       map[string]string `json:"data,omitempty"`
	BinaryData map[string][]byte `json:"binaryData,omitempty"`
}

type referenceVector struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional"`
}

var stateNames = map[canon.ConfigMapState]string{
	canon.ConfigMapUnknown: "unknown", canon.ConfigMapAbsent: "absent", canon.ConfigMapPresent: "present",
}

const everyReference = `"volumes":[{"name":"v","configMap":{"name":"files"}},{"name":"p","projected":{"sources":[{"configMap":{"name":"extra","optional":true}},{"secret":{"name":"s"}}]}}],` +
	`"initContainers":[{"name":"i","envFrom":[{"configMapRef":{"name":"setup"}}]}],` +
	`"containers":[{"name":"c","env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"settings","key":"a"}}}],"envFrom":[{"configMapRef":{"name":"files","optional":true}}]}],` +
	`"ephemeralContainers":[{"name":"e","envFrom":[{"configMapRef":{"name":"debug"}}]}]`

var closureInputs = []struct {
	name       string
	gvk        canon.GVK
	body       string
	exclude    []string
	configMaps configMaps
}{
	{"no references", deployment, podSpec(`"containers":[{"name":"b"},{"name":"a"}]`), nil, nil},
	{"a Pod", pod, `{"metadata":{"name":"x"},"spec":{"nodeName":"n","volumes":[{"name":"v","configMap":{"name":"a"}}]}}`, nil, configMaps{"a": present(map[string]string{"k": "v"})}},
	{"a CronJob", cronJob, `{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"c","envFrom":[{"configMapRef":{"name":"a"}}]}]}}}}}}`, nil, configMaps{"a": absent}},
	{"every kind of reference", deployment, podSpec(everyReference), nil, configMaps{
		"files":    present(map[string]string{"b": "2", "a": "1\n"}),
		"extra":    absent,
		"setup":    {State: canon.ConfigMapPresent, Data: map[string]string{"é": ""}, BinaryData: map[string][]byte{"z": {0, 0xff}}},
		"settings": present(nil),
		"debug":    presentBinary(map[string][]byte{"k": {}}),
	}},
	{"present and empty", deployment, volumesOf("a"), nil, configMaps{"a": present(nil)}},
	{"absent", deployment, volumesOf("a"), nil, configMaps{"a": absent}},
	{"a value that looks like another key", deployment, volumesOf("a"), nil, configMaps{"a": present(map[string]string{"a": "1\nd:b=2"})}},
	{"two keys", deployment, volumesOf("a"), nil, configMaps{"a": present(map[string]string{"a": "1", "b": "2"})}},
	{"an excluded reference", deployment, volumesOf("a", "b"), []string{"/spec/template/spec/volumes/[name=v1]"}, configMaps{"a": absent, "b": {}}},
	{"a read that failed", deployment, volumesOf("a", "b"), nil, configMaps{"a": present(nil), "b": {}}},
	{"a kind without pods", service, `{"spec":{}}`, nil, nil},
	{"no template", deployment, `{"spec":{}}`, nil, nil},
}

func currentClosures(t *testing.T) []closureVector {
	t.Helper()
	var out []closureVector
	for _, in := range closureInputs {
		v := closureVector{
			Name: in.name, Group: in.gvk.Group, Version: in.gvk.Version, Kind: in.gvk.Kind, Body: in.body,
			Exclude: in.exclude, Key: closureSecret, ConfigMaps: []configMapVector{},
		}
		for _, name := range slices.Sorted(maps.Keys(in.configMaps)) {
			m := in.configMaps[name]
			v.ConfigMaps = append(v.ConfigMaps, configMapVector{name, stateNames[m.State], m.Data, m.BinaryData})
		}
		var exclude []canon.Path
		for _, text := range in.exclude {
			exclude = append(exclude, path(t, text))
		}
		d := parse(t, []byte(in.body), in.gvk)
		digest, err := d.Closure(closureKey(t, closureSecret), in.configMaps, exclude...)
		if err != nil {
			v.Error = closureErrorName(t, err)
			out = append(out, v)
			continue
		}
		references, err := d.ConfigMapReferences(exclude...)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range references {
			v.References = append(v.References, referenceVector(r))
		}
		v.Digest = digest
		v.Message = naiveMessage(naiveTemplate(d.AppendCanonical(nil, exclude...), in.gvk), in.configMaps)
		out = append(out, v)
	}
	return out
}

func closureErrorName(t *testing.T, err error) string {
	t.Helper()
	if unknown, ok := errors.AsType[*canon.UnknownConfigMapError](err); ok {
		return "UnknownConfigMap " + unknown.Name
	}
	if errors.Is(err, canon.ErrNoPodTemplate) {
		return "NoPodTemplate"
	}
	t.Fatalf("unexpected error %v", err)
	return ""
}

// The message is the twin's; the digest, ours. So the published pair holds only
// when both agree.
func TestPublishedClosuresAreThoseOfTheirMessages(t *testing.T) {
	digests := 0
	for _, v := range currentClosures(t) {
		if v.Error != "" {
			continue
		}
		if diff := cmp.Diff(naiveClosure(v.Key, v.Message), string(v.Digest)); diff != "" {
			t.Errorf("%s (-twin +published):\n%s", v.Name, diff)
		}
		digests++
	}
	failed := slices.ContainsFunc(currentClosures(t), func(v closureVector) bool { return strings.HasPrefix(v.Error, "UnknownConfigMap") })
	if digests < 9 || !failed {
		t.Errorf("%d digests published, an unknown one: %v", digests, failed)
	}
}
