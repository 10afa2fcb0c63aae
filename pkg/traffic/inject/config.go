// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Config is what an installation decides. Zero values of all but the images and the
// address of the control plane have a default.
type Config struct {
	// ProxyImage has an executable `envoy` in its path, and need have nothing else.
	ProxyImage string
	// RedirectImage sets the rules; needed for Redirect only.
	RedirectImage string
	PullPolicy    corev1.PullPolicy
	// Mode of pods that name none; Explicit by default.
	Mode Mode
	// UID is the proxy's user and group. No container of a pod in Redirect mode may
	// have it.
	UID int64
	// Concurrency is the number of worker threads, 2 by default.
	Concurrency int
	// Resources of the proxy.
	Resources corev1.ResourceRequirements
	// TokenLifetime is one hour by default and ten minutes at least; the kubelet
	// renews a token after four fifths of it.
	TokenLifetime time.Duration

	Bootstrap BootstrapConfig
}

const (
	defaultUID         = 15700
	defaultConcurrency = 2
	defaultLifetime    = time.Hour
	minLifetime        = 10 * time.Minute // the API server's own bound
)

// defaultResources: an Envoy with 50 upstreams takes some 70 MiB. There are limits
// because a quota on limits would refuse a pod without, and requests because an
// autoscaler needs one on each container.
func defaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("96Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
}

func (c Config) withDefaults() Config {
	if c.Mode == "" {
		c.Mode = Explicit
	}
	if c.UID == 0 {
		c.UID = defaultUID
	}
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.TokenLifetime == 0 {
		c.TokenLifetime = defaultLifetime
	}
	if c.Resources.Requests == nil && c.Resources.Limits == nil {
		c.Resources = defaultResources()
	}
	return c
}

// Validate says what is wrong with a configuration. A process that injects asks it
// once, at its start.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if c.ProxyImage == "" {
		errs = append(errs, errors.New("the proxy needs an image"))
	}
	if !c.Mode.valid() {
		errs = append(errs, fmt.Errorf("the mode %q is neither %s nor %s", c.Mode, Explicit, Redirect))
	}
	if c.Mode == Redirect && c.RedirectImage == "" {
		errs = append(errs, fmt.Errorf("mode %s needs an image that sets the rules", Redirect))
	}
	if c.UID < 0 || c.UID > 1<<31-1 {
		errs = append(errs, fmt.Errorf("the proxy's user %d is none", c.UID))
	}
	if c.TokenLifetime < minLifetime {
		errs = append(errs, fmt.Errorf("a token cannot live for %s, only for %s or more", c.TokenLifetime, minLifetime))
	}
	if err := checkConcurrency(c.Concurrency); err != nil {
		errs = append(errs, err)
	}
	if err := checkResources(c.Resources); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, c.Bootstrap.validate())...)
}
