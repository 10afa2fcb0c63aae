// SPDX-License-Identifier: Apache-2.0

package seed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

// fake is a test that fails or passes as it is told.
type fake struct {
	testing.TB
	failed   bool
	said     []string
	cleanups []func()
}

func (*fake) Helper() {}

func (f *fake) Failed() bool { return f.failed }

func (f *fake) Cleanup(do func()) { f.cleanups = append(f.cleanups, do) }

func (f *fake) Logf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *fake) Fatalf(format string, args ...any) {
	f.failed = true
	f.Logf(format, args...)
}

// chosen is the seed that a test gets, and what the test says of it.
func chosen(failed bool) (uint64, string) {
	f := &fake{failed: failed}
	got := seed.Of(f, 7)
	for _, do := range f.cleanups {
		do()
	}
	return got, strings.Join(f.said, "\n")
}

func TestOf(t *testing.T) {
	tests := map[string]struct {
		long, demanded string
		failed         bool
		want           uint64
		said           string
	}{
		"a quick run has the usual seed":               {want: 7},
		"a demanded seed holds":                        {demanded: "99", want: 99},
		"a demanded seed holds in a long run as well":  {demanded: "99", long: "1", want: 99},
		"a long run that is turned off is a quick one": {long: "0", want: 7},
		"a test that fails tells its seed": {
			demanded: "99", failed: true, want: 99, said: "the seed of the random choices was 99; PLUMBLINE_SEED=99 repeats them",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(seed.Long, tc.long)
			t.Setenv(seed.Variable, tc.demanded)
			if got, said := chosen(tc.failed); got != tc.want || said != tc.said {
				t.Errorf("got %d and %q, want %d and %q", got, said, tc.want, tc.said)
			}
		})
	}
}

func TestALongRunHasNewSeeds(t *testing.T) {
	t.Setenv(seed.Long, "1")
	t.Setenv(seed.Variable, "")
	seen := map[uint64]bool{}
	for range 10 {
		got, _ := chosen(false)
		seen[got] = true
	}
	if len(seen) < 2 {
		t.Errorf("always %v", seen)
	}
}

func TestASeedThatIsNoNumberEndsTheTest(t *testing.T) {
	t.Setenv(seed.Variable, "x")
	if _, said := chosen(false); !strings.Contains(said, seed.Variable) {
		t.Errorf("it said %q", said)
	}
}

func TestRandomRepeats(t *testing.T) {
	t.Setenv(seed.Variable, "5")
	if a, b := seed.Random(t).Uint64(), seed.Random(t).Uint64(); a != b {
		t.Errorf("%d and %d", a, b)
	}
}
