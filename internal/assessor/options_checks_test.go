// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// parseWith reads arguments and environment variables.
func parseWith(args []string, variables map[string]string) (Options, error) {
	var o Options
	fs := flag.NewFlagSet("assessor", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o.AddFlags(fs)
	return o, options.Parse(fs, args, func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	})
}

// A period that nobody gave is not the same as never.
func TestTheResyncPeriodIsGivenOrNot(t *testing.T) {
	given := func(d time.Duration) *time.Duration { return &d }
	const variable, alias = "PLUMBLINE_RESYNC_PERIOD", "DEFAULT_RESYNC_PERIOD"
	for name, tc := range map[string]struct {
		args      []string
		variables map[string]string
		want      *time.Duration
		refused   string // part of the error
	}{
		"neither":                     {},
		"the flag":                    {args: []string{"--resync-period=3h"}, want: given(3 * time.Hour)},
		"never":                       {args: []string{"--resync-period=0s"}, want: given(0)},
		"the variable":                {variables: map[string]string{variable: "90m"}, want: given(90 * time.Minute)},
		"the flag over the variable":  {args: []string{"--resync-period=3h"}, variables: map[string]string{variable: "90m"}, want: given(3 * time.Hour)},
		"never over the variable":     {args: []string{"--resync-period=0s"}, variables: map[string]string{variable: "90m"}, want: given(0)},
		"what is no period":           {args: []string{"--resync-period=soon"}, refused: "not a period"},
		"a period of no time":         {args: []string{"--resync-period=10ms"}, refused: "not a period"},
		"a negative one, by variable": {variables: map[string]string{variable: "-1h"}, refused: variable},

		"the other flag":                        {args: []string{"--default-resync-period=3h"}, want: given(3 * time.Hour)},
		"the other variable":                    {variables: map[string]string{alias: "90m"}, want: given(90 * time.Minute)},
		"the other variable is none":            {variables: map[string]string{alias: "soon"}, refused: alias},
		"the flag over the other variable":      {args: []string{"--resync-period=3h"}, variables: map[string]string{alias: "90m"}, want: given(3 * time.Hour)},
		"the other flag over the variable":      {args: []string{"--default-resync-period=3h"}, variables: map[string]string{variable: "90m", alias: "1h"}, want: given(3 * time.Hour)},
		"both flags with one value":             {args: []string{"--default-resync-period=3h", "--resync-period=180m"}, want: given(3 * time.Hour)},
		"both flags contradict each other":      {args: []string{"--default-resync-period=3h", "--resync-period=4h"}, refused: "4h0m0s contradicts --default-resync-period, which is 3h0m0s; give one of the two"},
		"both variables with one value":         {variables: map[string]string{variable: "1h", alias: "60m"}, want: given(time.Hour)},
		"both variables contradict each other":  {variables: map[string]string{variable: "1h", alias: "2h"}, refused: "parsing environment variable PLUMBLINE_RESYNC_PERIOD: 1h0m0s contradicts --default-resync-period"},
		"a flag that is given again":            {args: []string{"--resync-period=3h", "--resync-period=4h"}, want: given(4 * time.Hour)},
		"a prefixed variable of the other name": {variables: map[string]string{"PLUMBLINE_DEFAULT_RESYNC_PERIOD": "1h"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseWith(tc.args, tc.variables)
			if (err != nil) != (tc.refused != "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Fatalf("the error is %v, want %q in it", err, tc.refused)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, o.ResyncPeriod); diff != "" {
				t.Errorf("the period (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheDriftIntervalAndTheDriftThreshold(t *testing.T) {
	for name, tc := range map[string]struct {
		args      []string
		variables map[string]string
		interval  time.Duration
		threshold resync.Percent
		refused   string // part of an error
	}{
		"the defaults":               {interval: 3 * time.Hour},
		"an interval":                {args: []string{"--drift-interval=10m"}, interval: 10 * time.Minute},
		"a percentage":               {args: []string{"--drift-threshold=20%"}, interval: 3 * time.Hour, threshold: 20},
		"a fraction":                 {args: []string{"--drift-threshold=0.2"}, interval: 3 * time.Hour, threshold: 20},
		"variables":                  {variables: map[string]string{"PLUMBLINE_DRIFT_INTERVAL": "10h", "PLUMBLINE_DRIFT_THRESHOLD": "0.05"}, interval: 10 * time.Hour, threshold: 5},
		"an interval of no time":     {args: []string{"--drift-interval=0s"}, refused: "--drift-interval"},
		"an interval of two years":   {args: []string{"--drift-interval=17520h"}, refused: "--drift-interval"},
		"a threshold of nothing":     {args: []string{"--drift-threshold=0"}, refused: "-drift-threshold"},
		"a threshold beyond all":     {args: []string{"--drift-threshold=1.5"}, refused: "a fraction from 0.01 to 1"},
		"a percentage without its %": {args: []string{"--drift-threshold=20"}, refused: "a percentage from 1% to 100%"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseWith(tc.args, tc.variables)
			if err == nil {
				err = o.Validate().ToAggregate()
			}
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("the error is %v, want %q in it", err, tc.refused)
				}
				return
			}
			if err != nil || o.DriftInterval != tc.interval || o.DriftThreshold != tc.threshold {
				t.Errorf("the interval is %s and the threshold %d, %v; want %s and %d", o.DriftInterval, o.DriftThreshold, err, tc.interval, tc.threshold)
			}
		})
	}
}
