// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// What is read again and again is read in this process: a kubectl for each look costs a
// tenth of a second of a processor, which the pods that are waited for need themselves.

// reader is a connection to a cluster.
type reader struct {
	objects client.Client
	raw     rest.Interface
}

// Read gets one object; the namespace of one that belongs to the whole cluster is empty.
func (c *Cluster) Read(ctx context.Context, into client.Object, namespace, name string) error {
	r, err := c.reader()
	if err != nil {
		return err
	}
	reflect.ValueOf(into).Elem().SetZero() // what is decoded into an older object is added to it
	if err := r.objects.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		return fmt.Errorf("reading %T %s/%s: %w", into, namespace, name, err)
	}
	return nil
}

// ReadAll lists the objects of a namespace.
func (c *Cluster) ReadAll(ctx context.Context, into client.ObjectList, namespace string, options ...client.ListOption) error {
	r, err := c.reader()
	if err != nil {
		return err
	}
	reflect.ValueOf(into).Elem().SetZero()
	if err := r.objects.List(ctx, into, append(options, client.InNamespace(namespace))...); err != nil {
		return fmt.Errorf("listing %T in %s: %w", into, namespace, err)
	}
	return nil
}

// ReadRaw gets a path of the API server, such as that of a port of a pod.
func (c *Cluster) ReadRaw(ctx context.Context, path string) ([]byte, error) {
	r, err := c.reader()
	if err != nil {
		return nil, err
	}
	body, err := r.raw.Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w: %s", path, err, body)
	}
	return body, nil
}

// PostRaw sends JSON to a path of the API server, such as that of a port of a service.
func (c *Cluster) PostRaw(ctx context.Context, path string, body []byte) error {
	r, err := c.reader()
	if err != nil {
		return err
	}
	if answer, err := r.raw.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).DoRaw(ctx); err != nil {
		return fmt.Errorf("sending to %s: %w: %s", path, err, answer)
	}
	return nil
}

// reader connects once.
func (c *Cluster) reader() (*reader, error) {
	c.connecting.Lock()
	defer c.connecting.Unlock()
	if c.connected != nil {
		return c.connected, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1 // tests are bounded by their waits
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	log.SetLogger(logr.Discard()) // nothing is logged; without a logger it complains
	objects, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	config.NegotiatedSerializer = clientgoscheme.Codecs
	raw, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	c.connected = &reader{objects, raw}
	return c.connected, nil
}
