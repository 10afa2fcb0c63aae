// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/kube"
)

func TestReadingsThatAreHeldAreBounded(t *testing.T) {
	a := NewAhead(&watched{})
	o := version(5)
	key := func(i int) kube.Key {
		return kube.Key{GroupVersionKind: deployments, Namespace: "shop", Name: fmt.Sprint("web-", i)}
	}
	for i := range 3 {
		if !a.Hold(key(i), Reading{Object: o, Version: "5"}, nil) {
			t.Fatalf("after %d small readings there is no room", i)
		}
	}
	large := make([]byte, 0, maxHeldBytes*2)
	large = fmt.Appendf(large, `{"metadata":{"uid":"u"},"spec":%q}`, noise(7<<20))
	huge, err := kube.Decode(large, deployments)
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for i := range 5 {
		if a.Hold(key(100+i), Reading{Object: huge, Version: "6"}, nil) {
			held++
		}
	}
	if int64(held)*huge.ContentBytes() > maxHeldBytes || held == 0 || held == 5 {
		t.Errorf("%d readings of %d bytes are held", held, huge.ContentBytes())
	}
	if !a.Hold(key(100), Reading{Object: huge, Version: "7"}, nil) {
		t.Error("a newer reading of an object does not take the place of the older one")
	}
}

// noise is text that no compression makes much smaller.
func noise(size int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
	text, x := make([]byte, size), uint64(88172645463325252)
	for i := range text {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		text[i] = letters[x%64]
	}
	return string(text)
}
