// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

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

// Validate says what is wrong with a configuration, and with which field of it. A
// process that injects asks it once, at its start.
func (c Config) Validate() error {
	c = c.withDefaults()
	return errors.Join(
		in("proxyImage", checkImage(c.ProxyImage, true)),
		in("redirectImage", checkImage(c.RedirectImage, c.Mode == Redirect)),
		in("pullPolicy", checkPullPolicy(c.PullPolicy)),
		in("mode", checkMode(c.Mode)),
		in("uid", checkUID(c.UID)),
		in("tokenLifetime", checkLifetime(c.TokenLifetime)),
		in("concurrency", checkConcurrency(c.Concurrency)),
		in("resources", checkResources(c.Resources)),
		c.Bootstrap.validate(),
	)
}

// in says which field an error is about.
func in(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}

func checkImage(image string, needed bool) error {
	switch {
	case image == "" && needed:
		return errors.New("needs an image")
	case strings.ContainsFunc(image, unicode.IsSpace):
		return fmt.Errorf("%q is no image", image)
	}
	return nil
}

func checkPullPolicy(policy corev1.PullPolicy) error {
	switch policy {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
		return nil
	default:
		return fmt.Errorf("%q is not %s, %s or %s", policy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	}
}

func checkMode(mode Mode) error {
	if !mode.valid() {
		return fmt.Errorf("%q is neither %s nor %s", mode, Explicit, Redirect)
	}
	return nil
}

func checkUID(uid int64) error {
	if uid < 1 || uid > 1<<31-1 {
		return fmt.Errorf("%d is no user that is not root", uid)
	}
	return nil
}

func checkLifetime(lifetime time.Duration) error {
	if lifetime < minLifetime {
		return fmt.Errorf("a token cannot live for %s, only for %s or more", lifetime, minLifetime)
	}
	return nil
}
