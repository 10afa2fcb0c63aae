// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func parse(args []string, env map[string]string) (*Webhook, error) {
	w := &Webhook{}
	fs := flag.NewFlagSet("t", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	w.AddFlags(fs)
	return w, Parse(fs, args, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		args []string
		env  map[string]string
		get  func(*Webhook) any
		want any
	}{
		"a default":                   {get: func(w *Webhook) any { return w.Port }, want: 10250},
		"a flag":                      {args: []string{"--port=1"}, get: func(w *Webhook) any { return w.Port }, want: 1},
		"a variable":                  {env: map[string]string{"PLUMBLINE_PORT": "2"}, get: func(w *Webhook) any { return w.Port }, want: 2},
		"a flag wins over a variable": {args: []string{"--port=1"}, env: map[string]string{"PLUMBLINE_PORT": "2"}, get: func(w *Webhook) any { return w.Port }, want: 1},
		"a flag that repeats the default wins too": {args: []string{"--port=10250"}, env: map[string]string{"PLUMBLINE_PORT": "2"}, get: func(w *Webhook) any { return w.Port }, want: 10250},
		"a variable with dashes in its flag":       {env: map[string]string{"PLUMBLINE_REDIS_ADDRESS": "r:1"}, get: func(w *Webhook) any { return w.Redis.Address }, want: "r:1"},
		"a boolean variable":                       {env: map[string]string{"PLUMBLINE_STAMP_WRITER": "true"}, get: func(w *Webhook) any { return w.StampWriter }, want: true},
		"an empty variable clears":                 {env: map[string]string{"PLUMBLINE_METRICS_ADDRESS": ""}, get: func(w *Webhook) any { return w.MetricsAddress }, want: ""},
		"a duration":                               {args: []string{"--drain-delay", "3s"}, get: func(w *Webhook) any { return w.DrainDelay }, want: 3 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, err := parse(tc.args, tc.env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.get(w)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
	}{
		"an unknown flag":          {args: []string{"--nope"}},
		"an argument":              {args: []string{"serve"}},
		"a flag of wrong type":     {args: []string{"--port=x"}},
		"a variable of wrong type": {env: map[string]string{"PLUMBLINE_PORT": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(tc.args, tc.env); err == nil {
				t.Error("no error")
			}
		})
	}
	if _, err := parse([]string{"--help"}, nil); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help gave %v", err)
	}
}

func TestValidate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want []string // the paths of the errors
	}{
		"the defaults":                           {},
		"everything off":                         {args: []string{"--metrics-address=", "--health-address="}},
		"a unix socket":                          {args: []string{"--redis-address=/run/redis/s"}},
		"a port that is none":                    {args: []string{"--port=0", "--metrics-address=:x", "--health-address=8081"}, want: []string{"--metrics-address", "--health-address", "--port"}},
		"a log that is none":                     {args: []string{"--log-format=xml", "--log-level=loud"}, want: []string{"--log-format", "--log-level"}},
		"names that are none":                    {args: []string{"--namespace=A", "--tls-secret=_", "--service-name=", "--lease-name=-", "--webhook-configuration=a b", "--deployment-name=x_"}, want: []string{"--namespace", "--deployment-name", "--lease-name", "--service-name", "--tls-secret", "--webhook-configuration"}},
		"an authority without TLS":               {args: []string{"--redis-address=r:1", "--redis-ca-file=options_test.go"}, want: []string{"--redis-ca-file"}},
		"TLS on a unix socket":                   {args: []string{"--redis-address=/run/redis/s", "--redis-tls"}, want: []string{"--redis-tls"}},
		"TLS with an authority":                  {args: []string{"--redis-address=r:1", "--redis-tls", "--redis-ca-file=options_test.go"}},
		"several addresses of one Redis":         {args: []string{"--redis-address=a:1,b:2"}, want: []string{"--redis-address"}},
		"several addresses of a cluster":         {args: []string{"--redis-mode=Cluster", "--redis-address=a:1,b:2"}},
		"a cluster with an empty address":        {args: []string{"--redis-mode=Cluster", "--redis-address=a:1,"}, want: []string{"--redis-address"}},
		"a cluster on a unix socket":             {args: []string{"--redis-mode=Cluster", "--redis-address=/run/redis/s"}, want: []string{"--redis-address"}},
		"Sentinels and their primary":            {args: []string{"--redis-mode=Sentinel", "--redis-address=a:1,b:2", "--redis-master-name=m"}},
		"Sentinels without a primary":            {args: []string{"--redis-mode=Sentinel", "--redis-address=a:1"}, want: []string{"--redis-master-name"}},
		"a primary without Sentinels":            {args: []string{"--redis-address=a:1", "--redis-master-name=m"}, want: []string{"--redis-master-name"}},
		"the password of Sentinels":              {args: []string{"--redis-mode=Sentinel", "--redis-address=a:1", "--redis-master-name=m", "--redis-sentinel-password-file=" + file}},
		"the password of no Sentinels":           {args: []string{"--redis-address=a:1", "--redis-sentinel-password-file=" + file}, want: []string{"--redis-sentinel-password-file"}},
		"a mode of Redis that there is not":      {args: []string{"--redis-mode=Ring"}, want: []string{"--redis-mode"}},
		"a client certificate without its key":   {args: []string{"--redis-address=r:1", "--redis-tls", "--redis-client-certificate-file=options_test.go"}, want: []string{"--redis-client-key-file"}},
		"a client certificate without TLS":       {args: []string{"--redis-address=r:1", "--redis-client-certificate-file=options_test.go", "--redis-client-key-file=options_test.go"}, want: []string{"--redis-client-certificate-file"}},
		"no time for Redis":                      {args: []string{"--redis-timeout=0s"}, want: []string{"--redis-timeout"}},
		"a minute for Redis":                     {args: []string{"--redis-timeout=1m"}, want: []string{"--redis-timeout"}},
		"a second for Redis":                     {args: []string{"--redis-address=r:1", "--redis-timeout=1s"}},
		"a prefix with a star":                   {args: []string{"--redis-key-prefix=a*"}, want: []string{"--redis-key-prefix"}},
		"files that are missing":                 {args: []string{"--redis-address=r:1", "--redis-password-file=/nope", "--redis-mode=Sentinel", "--redis-master-name=m", "--redis-sentinel-password-file=/nope", "--client-ca-file=/nope", "--kubeconfig=/nope"}, want: []string{"--redis-password-file", "--redis-sentinel-password-file", "--kubeconfig", "--client-ca-file"}},
		"a folder for a file":                    {args: []string{"--client-ca-file=/"}, want: []string{"--client-ca-file"}},
		"injection without its configuration":    {args: []string{"--injection-configuration=a b"}, want: []string{"--injection-configuration"}},
		"a client name without a CA":             {args: []string{"--client-name=kube-apiserver"}, want: []string{"--client-name"}},
		"a client name with a CA":                {args: []string{"--client-name=kube-apiserver", "--client-ca-file=" + file}},
		"a drain that outlasts the grace period": {args: []string{"--drain-delay=1m"}, want: []string{"--drain-delay"}},
		"no concurrency":                         {args: []string{"--max-concurrent=0"}, want: []string{"--max-concurrent"}},
		"a certificate mode that is none":        {args: []string{"--certificate-mode=Manual"}, want: []string{"--certificate-mode"}},
		"waits without measure":                  {args: []string{"--certificate-settle=0s", "--connection-age=2h"}, want: []string{"--certificate-settle", "--connection-age"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, err := parse(tc.args, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range w.Validate() {
				got = append(got, e.Field)
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, slices.Compact(got)); diff != "" {
				t.Errorf("fields (-want +got)\n%s", diff)
			}
		})
	}
}

func TestSplitList(t *testing.T) {
	if diff := cmp.Diff([]string{"a", "b"}, SplitList(" a,,b ,")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := SplitList(""); got != nil {
		t.Errorf("got %v", got)
	}
}
