// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject/admission"
)

// addInjection makes what gives pods their proxy, if there is a configuration of it.
func (s *server) addInjection(config *rest.Config) error {
	if s.opts.InjectConfig == "" {
		return nil
	}
	raw, err := os.ReadFile(s.opts.InjectConfig)
	if err != nil {
		return fmt.Errorf("reading the configuration of the proxies: %w", err)
	}
	proxies, err := admission.ParseConfig(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", s.opts.InjectConfig, err)
	}
	namespaces, err := admission.NewNamespaces(config, s.knownLabels)
	if err != nil {
		return err
	}
	s.injector = &admission.Injector{Config: proxies, Namespaces: namespaces, Metrics: admission.NewMetrics(), Log: s.log}
	return s.registry.Register(s.injector.Metrics)
}

// knownLabels of a namespace are in the cache that the guards are judged by.
func (s *server) knownLabels(namespace string) map[string]string {
	snapshot := s.guards.Snapshot()
	if snapshot == nil {
		return nil
	}
	return snapshot.NamespaceLabels(namespace)
}
