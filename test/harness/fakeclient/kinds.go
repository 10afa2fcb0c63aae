// SPDX-License-Identifier: Apache-2.0

package fakeclient

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// KindsOf returns a function that returns the scheme of some kinds, always the same. It is made once, because
// making it takes longer than most tests, and no test changes it.
func KindsOf(adds ...func(*runtime.Scheme) error) func() *runtime.Scheme {
	return sync.OnceValue(func() *runtime.Scheme {
		kinds := runtime.NewScheme()
		var errs []error
		for _, add := range adds {
			errs = append(errs, add(kinds))
		}
		if err := errors.Join(errs...); err != nil {
			panic(fmt.Errorf("registering kinds: %w", err))
		}
		return kinds
	})
}
