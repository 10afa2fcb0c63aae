// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ReleaseRouter names a TrafficRouter, or the mesh.
type ReleaseRouter struct {
	Name       string                 `json:"name"`
	GatewayAPI *v1alpha1.ReleaseRoute `json:"gatewayAPI,omitempty" doc:"The route with the weights, for a TrafficRouter of type GatewayAPI."`
	Services   []VariationService     `json:"services,omitempty" kind:"-" doc:"The backends of the route: a Service for each variation."`
}

// VariationService is the Service of one variation.
type VariationService struct {
	Variation   string `json:"variation" kind:"-" pattern:"^[A-H]$" doc:"The letter of the variation."`
	ServiceName string `json:"serviceName"`
	Port        int32  `json:"port"`
}

func routersOf(routers []v1alpha1.ReleaseRouter, letters letters) (all []ReleaseRouter) {
	for i := range routers {
		var shown ReleaseRouter
		show(&shown, &routers[i])
		for j := range routers[i].Services {
			service := VariationService{Variation: letters[routers[i].Services[j].Variation]}
			show(&service, &routers[i].Services[j])
			shown.Services = append(shown.Services, service)
		}
		all = append(all, shown)
	}
	return all
}

// specRouters returns the routers with the names of variations in place of letters.
func specRouters(routers []ReleaseRouter, names map[string]v1alpha1.VariationName) (all []v1alpha1.ReleaseRouter, err error) {
	for i := range routers {
		var router v1alpha1.ReleaseRouter
		if err := take(&router, &routers[i]); err != nil {
			return nil, fmt.Errorf("routers[%d]: %w", i, err)
		}
		for j := range routers[i].Services {
			of := &routers[i].Services[j]
			service := v1alpha1.VariationService{Variation: names[of.Variation]}
			if service.Variation == "" {
				return nil, fmt.Errorf("routers[%d].services[%d].variation: the release has no variation %q", i, j, of.Variation)
			}
			if err := take(&service, of); err != nil {
				return nil, fmt.Errorf("routers[%d].services[%d]: %w", i, j, err)
			}
			router.Services = append(router.Services, service)
		}
		all = append(all, router)
	}
	return all, nil
}
