// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/test/metricspage"
)

func TestTheMetricsPageIsThatOfTheWebhook(t *testing.T) {
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	inject := filepath.Join(t.TempDir(), "inject.yaml")
	if err := os.WriteFile(inject, []byte(proxies), 0o600); err != nil {
		t.Fatal(err)
	}
	var opts options.Webhook
	fs := flag.NewFlagSet("webhook", flag.ContinueOnError)
	opts.AddFlags(fs)
	if err := fs.Parse([]string{"--kubeconfig=" + config, "--inject-config=" + inject}); err != nil {
		t.Fatal(err)
	}
	s, err := newServer(&opts, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	metricspage.Check(t, "webhook", s.registry)
}
