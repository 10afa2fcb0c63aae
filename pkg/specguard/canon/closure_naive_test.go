// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sort"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// The naive twin of the closure, written from docs/reference/canonical-hash.md
// alone. It starts from the canonical bytes of the whole object.

// naiveTemplate cuts the pod template out; nil when there is none.
func naiveTemplate(canonical []byte, gvk canon.GVK) []byte {
	names, ok := map[string][]string{
		"/v1/Pod": {}, "/v1/PodTemplate": {"template"}, "batch/v1/CronJob": {"spec", "jobTemplate", "spec", "template"},
		"/v1/ReplicationController": {"spec", "template"}, "apps/v1/Deployment": {"spec", "template"},
		"apps/v1/ReplicaSet": {"spec", "template"}, "apps/v1/DaemonSet": {"spec", "template"},
		"apps/v1/StatefulSet": {"spec", "template"}, "batch/v1/Job": {"spec", "template"},
	}[gvk.Group+"/"+gvk.Version+"/"+gvk.Kind]
	if !ok {
		return nil
	}
	for _, name := range names {
		var members map[string]json.RawMessage
		if json.Unmarshal(canonical, &members) != nil {
			return nil
		}
		canonical = members[name]
	}
	if len(canonical) == 0 || canonical[0] != '{' {
		return nil
	}
	return canonical
}

// naiveReferences gives each name, and whether all references are optional.
func naiveReferences(template []byte) map[string]bool {
	var decoded map[string]any
	decoder := json.NewDecoder(bytes.NewReader(template))
	decoder.UseNumber() // a float64 does not hold every number
	if err := decoder.Decode(&decoded); err != nil {
		panic(err)
	}
	out := map[string]bool{}
	add := func(reference any) {
		m, _ := reference.(map[string]any)
		name, _ := m["name"].(string)
		if name == "" {
			return
		}
		optional := m["optional"] == true
		if known, seen := out[name]; seen && !known {
			optional = false
		}
		out[name] = optional
	}
	spec := decoded["spec"]
	for _, volume := range naiveList(spec, "volumes") {
		add(naiveMember(volume, "configMap"))
		for _, source := range naiveList(naiveMember(volume, "projected"), "sources") {
			add(naiveMember(source, "configMap"))
		}
	}
	for _, kind := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for _, c := range naiveList(spec, kind) {
			for _, source := range naiveList(c, "envFrom") {
				add(naiveMember(source, "configMapRef"))
			}
			for _, variable := range naiveList(c, "env") {
				add(naiveMember(naiveMember(variable, "valueFrom"), "configMapKeyRef"))
			}
		}
	}
	return out
}

func naiveMember(value any, name string) any {
	m, _ := value.(map[string]any)
	return m[name]
}

func naiveList(value any, name string) []any {
	list, _ := naiveMember(value, name).([]any)
	return list
}

// naiveMessage is what the digest is made of.
func naiveMessage(template []byte, configMaps map[string]canon.ConfigMap) []byte {
	var b bytes.Buffer
	number := func(n int) { _ = binary.Write(&b, binary.BigEndian, uint64(n)) }
	part := func(s string) { number(len(s)); b.WriteString(s) }
	part(string(template))
	var names []string
	for name := range naiveReferences(template) {
		names = append(names, name)
	}
	sort.Strings(names)
	number(len(names))
	for _, name := range names {
		part(name)
		m := configMaps[name]
		if m.State == canon.ConfigMapAbsent {
			b.WriteByte(0)
			continue
		}
		b.WriteByte(1)
		binaryData := map[string]string{}
		for key, value := range m.BinaryData {
			binaryData[key] = string(value)
		}
		for _, entries := range []map[string]string{m.Data, binaryData} {
			var keys []string
			for key := range entries {
				keys = append(keys, key)
			}
			sort.Strings(keys)
			number(len(keys))
			for _, key := range keys {
				part(key)
				part(entries[key])
			}
		}
	}
	return b.Bytes()
}

func naiveClosure(secret, message []byte) string {
	code := func(message []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write(message)
		return mac.Sum(nil)
	}
	return fmt.Sprintf("pl1c:hmac-sha256:%x:%x", code([]byte("plumbline closure key"))[:8], code(message))
}
