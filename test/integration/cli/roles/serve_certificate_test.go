// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"context"
	"flag"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/certs"
	"github.com/plumbline-dev/plumbline/internal/serve"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// The rights of the chart suffice to make a certificate, and to publish its authority for callers.
func TestTheAPIKeepsItsCertificateWithItsOwnRights(t *testing.T) {
	var o serve.Options
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	o.AddFlags(fs)
	log := slog.New(slog.DiscardHandler)
	own, times := serveConfig(t), certs.NewClock(log)
	own.Wrap(times.Listen)
	api, err := kubernetes.NewForConfig(own)
	must(t, err)
	keeper := certs.NewKeeper(api, o.Certificates(rendered.Namespace, "test"), times, log)
	inprocess.Start(t, "keeper", patience, func(ctx context.Context, ready func()) error {
		ready()
		return keeper.Run(ctx)
	})
	poll.Until(t, patience, "the certificate is served, and its authority is published", keeper.Ready)
	var published corev1.ConfigMap
	must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: rendered.Namespace, Name: serve.CAConfigMap}, &published))
	if published.Data["ca.crt"] == "" {
		t.Errorf("the ConfigMap has %v", published.Data)
	}
}
