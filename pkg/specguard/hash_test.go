// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAMaskedValueReadsAsAuthorized(t *testing.T) {
	const authorized, observed = `{"spec":{"paused":false,"replicas":3}}`, `{"spec":{"paused":true,"replicas":7}}`
	w := newWorld(t)
	w.guard("shop", testGuardSpec(), testNow)
	mask := []v1alpha1.Mask{{Path: "/spec/replicas"}}
	for name, tc := range map[string]struct {
		authorized []byte
		masks      []v1alpha1.Mask
		want       string // the body that has the hash
	}{
		"with a mask":                          {[]byte(authorized), mask, `{"spec":{"paused":true,"replicas":3}}`},
		"but not without one":                  {[]byte(authorized), nil, observed},
		"nor while there is no body to read":   {nil, mask, observed},
		"nor with a mask of an equal value":    {[]byte(`{"spec":{"replicas":7}}`), mask, observed},
		"nor at a place that no mask is about": {[]byte(authorized), []v1alpha1.Mask{{Path: "/spec"}}, observed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ObservedHash([]byte(observed), tc.authorized, w.gvk, w.rules, tc.masks)
			if err != nil {
				t.Fatal(err)
			}
			if want := w.parse([]byte(tc.want)).Hash(w.rules.Excluded()...); got != want {
				t.Errorf("the hash is %s, want that of %s", got, tc.want)
			}
		})
	}
}
