// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// ofChecks are the arguments of the assessor about scheduled checks.
func ofChecks(t *testing.T, sets ...string) []string {
	t.Helper()
	var args []string
	for _, set := range sets {
		args = append(args, "--set-json", set)
	}
	d := convert[appsv1.Deployment](t, find(t, template(t, args...), "Deployment", "plumbline-assessor"))
	var found []string
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		if slices.ContainsFunc([]string{"--resync-", "--drift-"}, func(p string) bool { return strings.HasPrefix(arg, p) }) {
			found = append(found, arg)
		}
	}
	return found
}

// The same settings have several spellings.
func TestTheAssessorIsToldHowOftenAndHowManyAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		sets, want []string
	}{
		"nothing by default":                {nil, nil},
		"a period":                          {[]string{`assessor.resyncPeriod="10h"`}, []string{"--resync-period=10h"}},
		"never":                             {[]string{`assessor.resyncPeriod="0s"`}, []string{"--resync-period=0s"}},
		"an interval":                       {[]string{`assessor.driftInterval="10m"`}, []string{"--drift-interval=10m"}},
		"an interval by its other name":     {[]string{`controller.driftInterval="10h"`}, []string{"--drift-interval=10h"}},
		"the interval by both names":        {[]string{`assessor.driftInterval="10m"`, `controller.driftInterval="10m"`}, []string{"--drift-interval=10m"}},
		"a percentage":                      {[]string{`assessor.driftThreshold="20%"`}, []string{"--drift-threshold=20%"}},
		"a fraction":                        {[]string{`assessor.driftThreshold=0.2`}, []string{"--drift-threshold=20%"}},
		"a fraction as text":                {[]string{`assessor.driftThreshold="0.2"`}, []string{"--drift-threshold=20%"}},
		"a fraction that no float holds":    {[]string{`assessor.driftThreshold=0.07`}, []string{"--drift-threshold=7%"}},
		"another one":                       {[]string{`assessor.driftThreshold=0.29`}, []string{"--drift-threshold=29%"}},
		"the least":                         {[]string{`assessor.driftThreshold=0.01`}, []string{"--drift-threshold=1%"}},
		"all":                               {[]string{`assessor.driftThreshold=1`}, []string{"--drift-threshold=100%"}},
		"all as text":                       {[]string{`assessor.driftThreshold="1.0"`}, []string{"--drift-threshold=100%"}},
		"a threshold by its other name":     {[]string{`controller.driftThreshold=0.2`}, []string{"--drift-threshold=20%"}},
		"one threshold in both spellings":   {[]string{`assessor.driftThreshold="20%"`, `controller.driftThreshold=0.2`}, []string{"--drift-threshold=20%"}},
		"a name that is left empty says no": {[]string{`assessor.driftThreshold=""`, `controller.driftThreshold=0.5`}, []string{"--drift-threshold=50%"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ofChecks(t, tc.sets...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			var o assessor.Options
			fs := flag.NewFlagSet("assessor", flag.ContinueOnError)
			fs.SetOutput(io.Discard)
			o.AddFlags(fs)
			if err := fs.Parse(got); err != nil {
				t.Errorf("the assessor refuses %q: %v", got, err)
			}
		})
	}
}

func TestTwoNamesOfOneSettingMustNotContradictEachOther(t *testing.T) {
	for name, tc := range map[string]struct {
		sets []string
		want string
	}{
		"intervals": {
			[]string{`assessor.driftInterval="10m"`, `controller.driftInterval="3h"`},
			"assessor.driftInterval is 10m and controller.driftInterval is 3h: both name the same setting, so give one of them",
		},
		"thresholds": {
			[]string{`assessor.driftThreshold="10%"`, `controller.driftThreshold=0.2`},
			"assessor.driftThreshold is 10% and controller.driftThreshold is 20%: both name the same setting, so give one of them",
		},
		"a fraction of a percent": {[]string{`assessor.driftThreshold=0.125`}, "a drift threshold is 0.125: it must be a percentage from 1% to 100%, or a fraction from 0.01 to 1 with at most two decimals"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var args []string
			for _, set := range tc.sets {
				args = append(args, "--set-json", set)
			}
			_, err := helm.Template(t.Context(), args...)
			var failed *rendered.Error
			if !errors.As(err, &failed) || !strings.Contains(failed.Stderr, tc.want) {
				t.Errorf("the error is %v, want %q in it", err, tc.want)
			}
		})
	}
}
