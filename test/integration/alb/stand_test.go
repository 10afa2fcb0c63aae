// SPDX-License-Identifier: Apache-2.0

//go:build integration

package alb

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/schemas"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/smithy-go/transport/http/protocol/awsquery"
	k8s "k8s.io/apimachinery/pkg/types"

	connector "github.com/plumbline-dev/plumbline/internal/connector/alb"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/faultproxy"
	"github.com/plumbline-dev/plumbline/test/harness/moto"
)

// throttling is the answer of AWS to a request too many.
const throttling = `<ErrorResponse xmlns="http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/"><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error><RequestId>1</RequestId></ErrorResponse>`

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// gate is the way from the router to moto: it notes each request, throttles, and leads through a way with faults.
type gate struct {
	way *faultproxy.Proxy
	url string

	mu        sync.Mutex
	made      []string
	throttles bool
}

func newGate(t *testing.T, server *moto.Program) *gate {
	t.Helper()
	way, err := faultproxy.Start("tcp", server.Address)
	must(t, err)
	t.Cleanup(func() { must(t, way.Close()) })
	g := &gate{way: way}
	onward := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: way.Address()}) },
		Transport:    &http.Transport{DisableKeepAlives: true},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // the client sees the end of the connection
	}
	entrance := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if g.noteRequest(nameOperation(r, body)) {
			w.Header().Set("Content-Type", "text/xml")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, throttling) // the client asks again
			return
		}
		onward.ServeHTTP(w, r)
	}))
	t.Cleanup(entrance.Close)
	g.url = entrance.URL
	return g
}

// nameOperation returns the name of a request, by the query protocol or by the path of the other one.
func nameOperation(r *http.Request, body []byte) string {
	if values, err := url.ParseQuery(string(body)); err == nil && values.Get("Action") != "" {
		return values.Get("Action")
	}
	return path.Base(r.URL.Path)
}

// noteRequest keeps the name of a request, and tells whether to throttle it.
func (g *gate) noteRequest(operation string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made = append(g.made, operation)
	return g.throttles
}

func (g *gate) setThrottle(is bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.throttles = is
}

// listRequests returns the names of those made so far.
func (g *gate) listRequests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.made...)
}

// account is that of a test: moto, the way to it, and a client past the way.
type account struct {
	*moto.Program
	gate   *gate
	client *elb.Client
	subnet string
	vpc    string
	made   int
}

func newAccount(t *testing.T) *account {
	t.Helper()
	server := moto.Start(t)
	loaded, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(moto.Region), config.WithBaseEndpoint("http://"+server.Address))
	must(t, err)
	a := &account{Program: server, gate: newGate(t, server), client: elb.NewFromConfig(loaded)}
	subnets, err := server.Ask(t.Context(), "ec2", url.Values{"Action": {"DescribeSubnets"}, "Version": {"2016-11-15"}})
	must(t, err)
	found := regexp.MustCompile(`<subnetId>(.*?)</subnetId>.*?<vpcId>(.*?)</vpcId>`).FindStringSubmatch(subnets)
	if found == nil {
		t.Fatalf("the account has no subnet: %s", subnets)
	}
	a.subnet, a.vpc = found[1], found[2]
	return a
}

// stand has a balancer with two target groups and a rule, and the routers of its route. Its clock is its own.
type stand struct {
	*testing.T
	*account
	rule, listener string
	config         connector.Config
	routers        map[k8s.NamespacedName]*connector.Router
	now            time.Time
}

func newStand(t *testing.T, a *account) *stand {
	t.Helper()
	a.made++
	s := &stand{T: t, account: a, routers: map[k8s.NamespacedName]*connector.Router{}, now: time.Now().UTC().Truncate(time.Minute)}
	balancers, metrics, err := connector.Connect(t.Context(), moto.Region, config.WithBaseEndpoint(a.gate.url))
	must(t, err)
	s.config = connector.Config{
		Balancers: balancers, Metrics: queried{metrics}, Region: moto.Region, Account: moto.Account, Groups: connector.Groups{},
		Now: func() time.Time { return s.now }, Random: func() float64 { return 0.5 },
	}
	for _, variation := range []string{"stable", "canary"} {
		s.config.Groups[variation] = s.makeGroup(variation)
	}
	s.makeRule()
	s.config.Route = s.rule
	return s
}

// queried asks CloudWatch by the query protocol, since moto does not know the protocol with CBOR.
type queried struct{ connector.Metrics }

func (q queried) GetMetricData(ctx context.Context, in *cloudwatch.GetMetricDataInput, _ ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricDataOutput, error) {
	return q.Metrics.GetMetricData(ctx, in, func(o *cloudwatch.Options) { o.Protocol = awsquery.New(schemas.GraniteServiceVersion20100801) })
}

// makeGroup makes a target group with a healthy target, and returns its ARN.
func (s *stand) makeGroup(variation string) string {
	s.Helper()
	out, err := s.client.CreateTargetGroup(s.Context(), &elb.CreateTargetGroupInput{
		Name: aws.String(fmt.Sprintf("%s-%d", variation, s.made)), Protocol: types.ProtocolEnumHttp, Port: aws.Int32(80), VpcId: aws.String(s.vpc), TargetType: types.TargetTypeEnumIp,
	})
	must(s, err)
	group := out.TargetGroups[0].TargetGroupArn
	_, err = s.client.RegisterTargets(s.Context(), &elb.RegisterTargetsInput{TargetGroupArn: group, Targets: []types.TargetDescription{target}})
	must(s, err)
	return *group
}

var target = types.TargetDescription{Id: aws.String("10.1.0.1"), Port: aws.Int32(8080)}

// makeRule makes a balancer, its listener and a rule. Listener and rule forward to both target groups.
func (s *stand) makeRule() {
	s.Helper()
	balancer, err := s.client.CreateLoadBalancer(s.Context(), &elb.CreateLoadBalancerInput{Name: aws.String(fmt.Sprint("edge-", s.made)), Subnets: []string{s.subnet}})
	must(s, err)
	listener, err := s.client.CreateListener(s.Context(), &elb.CreateListenerInput{
		LoadBalancerArn: balancer.LoadBalancers[0].LoadBalancerArn, Port: aws.Int32(80), Protocol: types.ProtocolEnumHttp, DefaultActions: s.forwardActions(1, 1),
	})
	must(s, err)
	s.listener = *listener.Listeners[0].ListenerArn
	rule, err := s.client.CreateRule(s.Context(), &elb.CreateRuleInput{
		ListenerArn: aws.String(s.listener), Priority: aws.Int32(10), Actions: s.forwardActions(1, 1),
		Conditions: []types.RuleCondition{{Field: aws.String("path-pattern"), Values: []string{"/shop/*"}}},
	})
	must(s, err)
	s.rule = *rule.Rules[0].RuleArn
}

// forwardActions returns the actions with weights of the stable variation and of the canary.
func (s *stand) forwardActions(stable, canary int32) []types.Action {
	return []types.Action{{Type: types.ActionTypeEnumForward, Order: aws.Int32(1), ForwardConfig: &types.ForwardActionConfig{
		TargetGroupStickinessConfig: &types.TargetGroupStickinessConfig{Enabled: aws.Bool(false)},
		TargetGroups: []types.TargetGroupTuple{
			{TargetGroupArn: aws.String(s.config.Groups["stable"]), Weight: aws.Int32(stable)}, {TargetGroupArn: aws.String(s.config.Groups["canary"]), Weight: aws.Int32(canary)},
		},
	}}}
}

// Router implements routertest.Stand.
func (s *stand) Router(release k8s.NamespacedName) traffic.Router {
	if s.routers[release] == nil {
		s.routers[release] = s.newRouter()
	}
	return s.routers[release]
}

func (s *stand) newRouter() *connector.Router {
	s.Helper()
	router, err := connector.New(s.config)
	must(s, err)
	return router
}

// split gives the canary a share.
func split(sequence uint64, canary traffic.Weight) traffic.Split {
	s := routertest.Split(sequence, canary)
	s.Key = traffic.Key{}
	return s
}

// readRule returns the rule past the way with faults.
func (s *stand) readRule() types.Rule {
	s.Helper()
	out, err := s.client.DescribeRules(context.WithoutCancel(s.Context()), &elb.DescribeRulesInput{RuleArns: []string{s.rule}})
	must(s, err)
	return out.Rules[0]
}

// editWeights changes the weights as another writer does.
func (s *stand) editWeights(stable, canary int32) {
	s.Helper()
	_, err := s.client.ModifyRule(s.Context(), &elb.ModifyRuleInput{RuleArn: aws.String(s.rule), Actions: s.forwardActions(stable, canary)})
	must(s, err)
}

// passTime lets time go by, so the router reads the API again.
func (s *stand) passTime(d time.Duration) { s.now = s.now.Add(d) }
