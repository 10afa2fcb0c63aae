// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/connector/traefik"
)

const (
	// patience bounds one answer of a Traefik.
	patience = 2 * time.Second
	// maxAnswer bounds an answer in bytes. The metrics of 1,000 services have about 3 MiB.
	maxAnswer = 32 << 20
)

// Program is one Traefik.
type Program struct {
	// Name is for people: namespace/pod.
	Name string
	// URL of its API and metrics, such as http://10.0.0.1:8080; "" is none, and then a split is Accepted at best.
	URL string
	// User and Password are those of basic authentication; an empty User sends none.
	User, Password string
}

// states returns what the Traefik has in force for each port.
func (p Program) states(ctx context.Context, client *http.Client, ports []traefik.Served) ([]traefik.State, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	states := make([]traefik.State, 0, len(ports))
	for _, port := range ports {
		answer, code, err := p.get(ctx, client, "/api/http/services/"+port.Name()+"@http")
		switch {
		case err != nil:
			return nil, err
		case code == http.StatusNotFound && bytes.Contains(answer, []byte("service not found")):
			states = append(states, traefik.State{})
			continue
		case code != http.StatusOK:
			return nil, fmt.Errorf("asking the API of %s: status %d; enable the API, or name the user", p.Name, code)
		}
		state, err := traefik.ReadService(port, answer)
		if err != nil {
			return nil, fmt.Errorf("asking the API of %s: %w", p.Name, err)
		}
		states = append(states, state)
	}
	return states, nil
}

func (p Program) metrics(ctx context.Context, client *http.Client) (traefik.Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, code, err := p.get(ctx, client, "/metrics")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("asking the metrics of %s: status %d", p.Name, code)
	}
	if err != nil {
		return traefik.Metrics{}, err
	}
	return traefik.ReadMetrics(bytes.NewReader(answer))
}

func (p Program) get(ctx context.Context, client *http.Client, path string) (answer []byte, code int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.URL, "/")+path, http.NoBody)
	if err != nil {
		return nil, 0, fmt.Errorf("asking %s: %w", p.Name, err)
	}
	if p.User != "" {
		request.SetBasicAuth(p.User, p.Password)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, 0, fmt.Errorf("asking %s: %w", p.Name, err)
	}
	defer func() { _ = response.Body.Close() }() // only read
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(answer) > maxAnswer {
		err = fmt.Errorf("more than %d bytes", maxAnswer)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading the answer of %s: %w", p.Name, err)
	}
	return answer, response.StatusCode, nil
}
