// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// largeDeployment is a deployment of about 20 KiB as the API server sends it,
// managedFields included.
func largeDeployment() []byte {
	var env, managed strings.Builder
	for i := range 160 {
		if i > 0 {
			env.WriteString(",")
			managed.WriteString(",")
		}
		fmt.Fprintf(&env, `{"name":"SETTING_%03d","value":"value %d, %s"}`, i, i, strings.Repeat(fmt.Sprint(i*7919), 8))
		fmt.Fprintf(&managed, `"k:{\"name\":\"SETTING_%03d\"}":{".":{},"f:name":{},"f:value":{}}`, i)
	}
	return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u1",`+
		`"resourceVersion":"7","generation":3,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web"},`+
		`"annotations":{"plumbline.dev/writer":"system:serviceaccount:ci:deployer"},`+
		`"managedFields":[{"manager":"deployer","operation":"Update","apiVersion":"apps/v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1",`+
		`"fieldsV1":{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:env":{%s}}}}}}}}]},`+
		`"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},`+
		`"spec":{"containers":[{"name":"app","image":"registry.example/shop:1","env":[%s]}]}}},"status":{}}`, managed.String(), env.String())
}

// BenchmarkDecode is what a start of the assessor does with each object.
func BenchmarkDecode(b *testing.B) {
	raw := largeDeployment()
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	var kept int
	for b.Loop() {
		o, err := Decode(raw, deployments)
		if err != nil {
			b.Fatal(err)
		}
		kept = int(o.body.size() + o.managed.size())
	}
	b.ReportMetric(float64(kept), "kept-B")
}

// BenchmarkKept is what a start of the assessor keeps of each object, with its content and
// without.
func BenchmarkKept(b *testing.B) {
	for name, detail := range map[string]Detail{"whole": DetailWhole, "partial": DetailMetadata} {
		b.Run(name, func(b *testing.B) {
			raw := largeDeployment()
			in := intake{keep: func(string) Detail { return detail }}
			kept := make([]*Object, 0, b.N)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for range b.N {
				o, _, err := in.take(raw, deployments)
				if err != nil {
					b.Fatal(err)
				}
				kept = append(kept, o)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "heap-B/object")
			b.ReportMetric(float64(kept[0].holding().fixed+kept[0].ContentBytes()), "counted-B/object")
		})
	}
}
