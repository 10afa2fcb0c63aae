// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/options"
)

func parse(t *testing.T, args ...string) *Options {
	t.Helper()
	var o Options
	fs := flag.NewFlagSet("assessor", flag.ContinueOnError)
	o.AddFlags(fs)
	if err := options.Parse(fs, args, func(string) (string, bool) { return "", false }); err != nil {
		t.Fatal(err)
	}
	return &o
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string // in the error; empty when there is none
	}{
		"the defaults":                          {},
		"the role of the chart":                 {args: []string{"--role=assess"}},
		"the API beside another role":           {args: []string{"--role=assess,serve"}, want: "the API runs alone"},
		"assessor and executor in one":          {args: []string{"--role=assess, execute"}},
		"the other way round":                   {args: []string{"--role=execute,assess"}},
		"the executor alone":                    {args: []string{"--role=execute"}},
		"a role twice":                          {args: []string{"--role=assess,execute,assess"}, want: `--role: Duplicate value: "assess"`},
		"the self-test beside the executor":     {args: []string{"--role=selftest,execute"}, want: "the self-test runs alone"},
		"the self-test":                         {args: []string{"--role=selftest"}},
		"the self-test beside another role":     {args: []string{"--role=assess,selftest"}, want: "the self-test runs alone"},
		"metrics read without end":              {args: []string{"--api-server-metrics=1s"}, want: "--api-server-metrics"},
		"metrics never read":                    {args: []string{"--api-server-metrics=0"}},
		"a role that nobody knows":              {args: []string{"--role=dance"}, want: `--role: Unsupported value: "dance"`},
		"no role":                               {args: []string{"--role="}, want: "--role: Required value"},
		"a negative retention":                  {args: []string{"--retention=-1s"}, want: "--retention"},
		"a retention of centuries":              {args: []string{"--retention=876000h"}, want: "--retention"},
		"a grace that would delay reporting":    {args: []string{"--record-grace=2s"}, want: "--record-grace"},
		"no check at all":                       {args: []string{"--max-concurrent-checks=0"}, want: "--max-concurrent-checks"},
		"checks without bound":                  {args: []string{"--max-concurrent-checks=101"}, want: "--max-concurrent-checks"},
		"no memory for objects":                 {args: []string{"--object-cache-bytes=1000"}, want: "--object-cache-bytes"},
		"both sources of assessments":           {args: []string{"--prometheus-url=https://prometheus.monitoring:9090", "--alertmanager-url=http://alertmanager.monitoring:9093", "--alertmanager-watchdog=Watchdog"}},
		"an address of Prometheus that is none": {args: []string{"--prometheus-url=prometheus:9090"}, want: "--prometheus-url: Invalid value"},
		"a token of Alertmanager without TLS":   {args: []string{"--alertmanager-url=http://alertmanager", "--alertmanager-token-file=/dev/null"}, want: "a token needs https:// in --alertmanager-url"},
		"authorities without an address":        {args: []string{"--alertmanager-ca-file=/dev/null"}, want: "is of no use without --alertmanager-url"},
		"a watchdog without an Alertmanager":    {args: []string{"--alertmanager-watchdog=Watchdog"}, want: "is of no use without --alertmanager-url"},
		"a watchdog with a quote":               {args: []string{"--alertmanager-url=http://a", "--alertmanager-watchdog=a\""}, want: "must be the name of an alert"},
		"a bad common option":                   {args: []string{"--log-format=xml"}, want: "--log-format"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := parse(t, tc.args...).Validate().ToAggregate()
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("the error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestDigestKey(t *testing.T) {
	dir := t.TempDir()
	long, short := filepath.Join(dir, "long"), filepath.Join(dir, "short")
	if err := os.WriteFile(long, bytes.Repeat([]byte("k"), minDigestKey), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(short, []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := parse(t).DigestKey(); key != nil || err != nil {
		t.Errorf("without a file the key is %q, %v", key, err)
	}
	if key, err := parse(t, "--digest-key-file="+long).DigestKey(); err != nil || len(key) != minDigestKey {
		t.Errorf("the key is %q, %v", key, err)
	}
	for _, file := range []string{short, filepath.Join(dir, "none")} {
		if _, err := parse(t, "--digest-key-file="+file).DigestKey(); err == nil {
			t.Errorf("%s is taken for a key", file)
		}
	}
}

func TestSetupIsCompleted(t *testing.T) {
	if err := (&Setup{}).complete(); err == nil {
		t.Error("a setup without an API server is complete")
	}
	if o := parse(t); o.Retention != 7*24*time.Hour || !o.LeaderElect {
		t.Errorf("the defaults are %+v", o)
	}
}
