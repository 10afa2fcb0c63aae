// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// write is the record of an ordinary write of one object.
func write(uid string) specguard.WriteRecord {
	return specguard.WriteRecord{
		UID: uid, APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
		Operation: specguard.OperationUpdate, ResourceVersionBefore: "123456", Generation: 7,
		HashAfter: "pl1:sha256:" + strings.Repeat("0", 64),
		Fields:    []string{"/spec/template/spec/containers/[name=app]/image"},
		Identity:  specguard.Identity{User: "system:serviceaccount:ci:deployer", Groups: []string{"system:serviceaccounts", "system:authenticated"}},
		Time:      time.Unix(1_700_000_000, 0), FieldManager: "kubectl",
	}
}

// What a record costs when the index is full, so that each one displaces another.
func BenchmarkRecordsAdd(b *testing.B) {
	const objects = 30_000
	uids := make([]string, objects)
	for i := range uids {
		uids[i] = fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
	}
	for name, uidOf := range map[string]func(int) string{
		"of many objects": func(i int) string { return uids[i%objects] },
		"of one object":   func(int) string { return uids[0] },
	} {
		b.Run(name, func(b *testing.B) {
			r := NewRecords()
			for i := range objects {
				r.Add(write(uidOf(i)))
			}
			record := write("")
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				record.UID = uidOf(i)
				r.Add(record)
			}
		})
	}
}

// What it costs to take what an object waits for, and to let go of it.
func BenchmarkRecordsConsume(b *testing.B) {
	r := NewRecords()
	record := write("u")
	b.ReportAllocs()
	for b.Loop() {
		r.Add(record)
		r.consume(r.of("u").from)
	}
}
