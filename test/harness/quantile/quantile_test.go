// SPDX-License-Identifier: Apache-2.0

package quantile

import (
	"testing"
	"time"
)

func TestAQuantileIsOneOfWhatWasMeasured(t *testing.T) {
	upTo := func(n int) (took []time.Duration) {
		for i := n; i > 0; i-- { // not in order
			took = append(took, time.Duration(i))
		}
		return took
	}
	for name, tc := range map[string]struct {
		of, percent int
		want        time.Duration
	}{
		"the median of one":                {1, 50, 1},
		"the median of an even number":     {10, 50, 5},
		"the median of an odd number":      {11, 50, 6},
		"the hundredth part of a thousand": {1000, 99, 990},
		"of less than a hundred":           {20, 99, 20},
		"the smallest":                     {10, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Of(upTo(tc.of), tc.percent); got != tc.want {
				t.Errorf("it is %d, want %d", got, tc.want)
			}
		})
	}
}
