// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/failopen"
	"github.com/plumbline-dev/plumbline/internal/figures"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// webhook is the name of the webhook's Service and of its Lease, in the chart.
const webhook = "plumbline-webhook"

// figuresOf are the figures of the assessor as a whole.
type figuresOf struct {
	leadership *figures.Leadership
	writes     *figures.WriteRate
	failOpen   *failopen.Metrics
}

func newFigures(informers cache.Informers, tracker *kube.Tracker, setup Setup) (*figuresOf, error) {
	failOpen, err := failopen.NewMetrics(setup.Registry)
	if err != nil {
		return nil, err
	}
	f := &figuresOf{
		leadership: &figures.Leadership{},
		writes:     &figures.WriteRate{Clock: setup.Clock, Log: setup.Log.WithName("figures")},
		failOpen:   failOpen,
	}
	for _, c := range []prometheus.Collector{
		f.leadership, f.writes,
		&figures.Fleet{Baselines: func(ctx context.Context, f func(*v1alpha1.Baseline)) error {
			return elected.Each(ctx, informers, &v1alpha1.Baseline{}, f)
		}, Active: f.leadership.Leading, Clock: setup.Clock},
		&figures.Retained{Objects: tracker, Active: f.leadership.Leading},
		&figures.Freshness{Objects: tracker, Active: f.leadership.Leading, Clock: setup.Clock},
	} {
		if err := setup.Registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the assessor's figures: %w", err)
		}
	}
	return f, nil
}

// register adds what runs on the leader: the mark of leadership, and the watch
// over fail-open windows.
func (f *figuresOf) register(lifetime context.Context, mgr manager.Manager, p *parts, setup Setup) error {
	raw, err := metricsClient(setup)
	if err != nil {
		return err
	}
	log := setup.Log.WithName("failopen")
	watcher := &failopen.Watcher{
		Config: failopen.Config{Namespace: setup.Namespace, Service: webhook, Lease: webhook, APIServerPeriod: setup.APIServerMetrics},
		Reader: mgr.GetAPIReader(), Raw: raw, Metrics: f.failOpen, Clock: setup.Clock, Log: log,
		Sweeper: &failopen.Sweep{
			Live: mgr.GetAPIReader(), Baselines: mgr.GetClient(), Objects: p.tracker, Guards: p.guards, Look: p.trigger.Look,
			Lifetime: lifetime, Metrics: f.failOpen, Clock: setup.Clock, Log: log,
		},
	}
	return errors.Join(mgr.Add(f.leadership), mgr.Add(watcher))
}

// metricsClient reads what is not an object.
func metricsClient(setup Setup) (rest.Interface, error) {
	config := rest.CopyConfig(setup.Config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the API server's metrics: %w", err)
	}
	return client, nil
}
