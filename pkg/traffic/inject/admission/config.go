// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// File is inject.Config as it is written in YAML. What is left out has the default of
// inject.Config.
type File struct {
	// ProxyImage has an executable `envoy` in its path.
	ProxyImage string `json:"proxyImage"`
	// RedirectImage sets the rules of mode redirect; without one there is only explicit.
	RedirectImage string            `json:"redirectImage,omitempty"`
	PullPolicy    corev1.PullPolicy `json:"pullPolicy,omitempty"`
	// Mode of pods that name none: explicit or redirect.
	Mode inject.Mode `json:"mode,omitempty"`
	// UID is the proxy's user and group.
	UID int64 `json:"uid,omitempty"`
	// Concurrency is the number of worker threads.
	Concurrency int `json:"concurrency,omitempty"`
	// Resources of the proxy.
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// TokenLifetime as in 1h.
	TokenLifetime metav1.Duration `json:"tokenLifetime,omitzero"`
	// XDSHost and XDSPort are those of the control plane.
	XDSHost string `json:"xdsHost"`
	XDSPort uint32 `json:"xdsPort"`
	// IPv6 is whether pods have addresses of both families.
	IPv6 bool `json:"ipv6,omitempty"`
}

func (f File) config() inject.Config {
	return inject.Config{
		ProxyImage: f.ProxyImage, RedirectImage: f.RedirectImage, PullPolicy: f.PullPolicy, Mode: f.Mode, UID: f.UID,
		Concurrency: f.Concurrency, Resources: f.Resources, TokenLifetime: f.TokenLifetime.Duration,
		Bootstrap: inject.BootstrapConfig{XDSHost: f.XDSHost, XDSPort: f.XDSPort, IPv6: f.IPv6},
	}
}

// ParseConfig reads a File. A field that is not known, or is there twice, is an error.
func ParseConfig(raw []byte) (inject.Config, error) {
	var f File
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return inject.Config{}, fmt.Errorf("reading YAML: %w", err)
	}
	strict, err := kjson.UnmarshalStrict(asJSON, &f)
	if err = errors.Join(append(strict, err)...); err != nil {
		return inject.Config{}, fmt.Errorf("reading the configuration of the proxies: %w", err)
	}
	c := f.config()
	if err := c.Validate(); err != nil {
		return inject.Config{}, fmt.Errorf("checking the configuration of the proxies: %w", err)
	}
	return c, nil
}
