// Prints worlds of Namespaces, Pods and NetworkPolicies, made at random from a seed, with what the Cyclonus engine says of every pair and port.
//
// Usage: random COUNT SEED. Which labels a selector matches is answered by Kubernetes' own library (apimachinery), and handed to the engine as names:
// Cyclonus v0.5.6 takes NotIn as not met by objects without the label, and the API server's library as met.
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	core "k8s.io/api/core/v1"
	net "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type port struct {
	Name     string        `json:"name"`
	Protocol core.Protocol `json:"protocol"`
	Number   int           `json:"containerPort"`
}

type pod struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Address   string            `json:"address"`
	Ports     []port            `json:"ports"`
}

type cluster struct {
	Namespaces map[string]map[string]string `json:"namespaces"`
	Pods       []pod                        `json:"pods"`
	Outside    []string                     `json:"outside"`
}

type probe struct {
	Protocol core.Protocol `json:"protocol"`
	Port     int           `json:"port"`
}

var probes = []probe{{"TCP", 80}, {"TCP", 81}, {"TCP", 8080}, {"UDP", 53}, {"UDP", 80}, {"SCTP", 80}, {"TCP", 65535}}

var (
	ports   = []port{{"http", "TCP", 80}, {"dns", "UDP", 53}}
	moved   = []port{{"http", "TCP", 8080}, {"http", "UDP", 80}, {"sig", "SCTP", 80}}
	ordered = []string{"x", "y", "z"}
)

func clusters() []cluster {
	made := func(address func(namespace, pod int) string, outside ...string) cluster {
		c := cluster{
			Namespaces: map[string]map[string]string{
				"x": {"team": "red"}, "y": {"team": "blue", "stage": "prod"}, "z": {},
			},
			Outside: outside,
		}
		add := func(namespace int, name string, labels map[string]string, ports []port) {
			c.Pods = append(c.Pods, pod{ordered[namespace], name, labels, address(namespace, len(c.Pods)), ports})
		}
		add(0, "a", map[string]string{"app": "a", "tier": "web"}, ports)
		add(0, "b", map[string]string{"app": "b", "tier": "db", "env": ""}, moved)
		add(0, "c", map[string]string{}, nil)
		add(1, "a", map[string]string{"app": "a", "env": "prod"}, moved)
		add(1, "b", map[string]string{"app": "b", "tier": "web"}, ports)
		add(2, "a", map[string]string{"app": "a", "tier": "db", "env": "dev"}, ports)
		for _, name := range ordered {
			c.Namespaces[name]["kubernetes.io/metadata.name"] = name
		}
		return c
	}
	return []cluster{
		made(func(n, p int) string { return fmt.Sprintf("10.%d.0.%d", n, p+1) }, "192.0.2.7", "10.9.9.9"),
		made(func(n, p int) string { return fmt.Sprintf("fd00:%d::%x", n, p+1) }, "2001:db8::7", "fd00:9::9"),
	}
}

type source struct{ *rand.Rand }

func (r source) chance(percent int) bool { return r.IntN(100) < percent }

func pick[T any](r source, from ...T) T { return from[r.IntN(len(from))] }

func some[T any](r source, most int, one func() T) []T {
	var list []T
	for range r.IntN(most + 1) {
		list = append(list, one())
	}
	return list
}

func (r source) selector(keys map[string][]string, order []string) meta.LabelSelector {
	var s meta.LabelSelector
	if r.chance(25) {
		return s
	}
	for range 1 + r.IntN(2) {
		key := pick(r, order...)
		switch {
		case r.chance(50):
			if s.MatchLabels == nil {
				s.MatchLabels = map[string]string{}
			}
			s.MatchLabels[key] = pick(r, keys[key]...)
		case r.chance(60):
			values := []string{pick(r, keys[key]...)}
			if r.chance(50) {
				values = append(values, pick(r, keys[key]...))
			}
			operator := pick(r, meta.LabelSelectorOpIn, meta.LabelSelectorOpNotIn)
			s.MatchExpressions = append(s.MatchExpressions, meta.LabelSelectorRequirement{Key: key, Operator: operator, Values: values})
		default:
			operator := pick(r, meta.LabelSelectorOpExists, meta.LabelSelectorOpDoesNotExist)
			s.MatchExpressions = append(s.MatchExpressions, meta.LabelSelectorRequirement{Key: key, Operator: operator})
		}
	}
	return s
}

func (r source) pods() meta.LabelSelector {
	return r.selector(map[string][]string{
		"app": {"a", "b", "c"}, "tier": {"web", "db"}, "env": {"prod", "dev", ""},
	}, []string{"app", "tier", "env"})
}

func (r source) namespaces() meta.LabelSelector {
	return r.selector(map[string][]string{
		"team": {"red", "blue"}, "stage": {"prod", "test"}, "kubernetes.io/metadata.name": ordered,
	}, []string{"team", "stage", "kubernetes.io/metadata.name"})
}

func (r source) block() *net.IPBlock {
	return &[]net.IPBlock{
		{CIDR: "0.0.0.0/0"},
		{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8"}},
		{CIDR: "10.0.0.0/8", Except: []string{"10.1.0.0/16", "10.0.0.2/32"}},
		{CIDR: "10.0.0.0/16"},
		{CIDR: "10.0.0.3/30"},
		{CIDR: "::ffff:10.1.0.0/112"},
		{CIDR: "192.0.2.0/24", Except: []string{"192.0.2.0/29"}},
		{CIDR: "::/0"},
		{CIDR: "::/0", Except: []string{"fd00::/8"}},
		{CIDR: "fd00::/16", Except: []string{"fd00:1::/32"}},
		{CIDR: "fd00:0::/32"},
		{CIDR: "fd00:1::4/128"},
		{CIDR: "2001:db8::/64"},
	}[r.IntN(13)]
}

func (r source) peer() net.NetworkPolicyPeer {
	pods, namespaces := r.pods(), r.namespaces()
	switch r.IntN(4) {
	case 0:
		return net.NetworkPolicyPeer{PodSelector: &pods}
	case 1:
		return net.NetworkPolicyPeer{NamespaceSelector: &namespaces}
	case 2:
		return net.NetworkPolicyPeer{PodSelector: &pods, NamespaceSelector: &namespaces}
	default:
		return net.NetworkPolicyPeer{IPBlock: r.block()}
	}
}

func (r source) port() net.NetworkPolicyPort {
	var p net.NetworkPolicyPort
	if r.chance(80) {
		protocol := pick(r, core.ProtocolTCP, core.ProtocolTCP, core.ProtocolUDP, core.ProtocolSCTP)
		p.Protocol = &protocol
	}
	switch r.IntN(4) {
	case 0:
	case 1:
		name := intstr.FromString(pick(r, "http", "dns", "sig", "none"))
		p.Port = &name
	case 2:
		number := intstr.FromInt32(pick[int32](r, 80, 81, 53, 8080, 9))
		p.Port = &number
	default:
		number := intstr.FromInt32(pick[int32](r, 1, 80, 81, 8000))
		end := number.IntVal + pick[int32](r, 0, 1, 80, 1000)
		if r.chance(20) {
			end = 65535
		}
		p.Port, p.EndPort = &number, &end
	}
	return p
}

func (r source) policy(number int) net.NetworkPolicy {
	p := net.NetworkPolicy{ObjectMeta: meta.ObjectMeta{Namespace: pick(r, ordered...), Name: "p" + strconv.Itoa(number)}}
	p.Spec.PodSelector = r.pods()
	types := 1 + r.IntN(3)
	if types&1 != 0 {
		p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, net.PolicyTypeIngress)
	}
	if types&2 != 0 {
		p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, net.PolicyTypeEgress)
	}
	// Also of directions that are no type of the policy, where rules mean nothing.
	for range r.IntN(3) {
		p.Spec.Ingress = append(p.Spec.Ingress, net.NetworkPolicyIngressRule{From: some(r, 2, r.peer), Ports: some(r, 2, r.port)})
	}
	for range r.IntN(3) {
		p.Spec.Egress = append(p.Spec.Egress, net.NetworkPolicyEgressRule{To: some(r, 2, r.peer), Ports: some(r, 2, r.port)})
	}
	return p
}

// The selector that names what the library says is matched, by label `it`.
func named(s *meta.LabelSelector, things map[string]map[string]string) *meta.LabelSelector {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return s
	}
	library, err := meta.LabelSelectorAsSelector(s)
	if err != nil {
		panic(err)
	}
	matched := []string{"nobody"}
	for name, have := range things {
		if library.Matches(labels.Set(have)) {
			matched = append(matched, name)
		}
	}
	return &meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{{Key: "it", Operator: meta.LabelSelectorOpIn, Values: matched}}}
}

func handed(p net.NetworkPolicy, c cluster) *net.NetworkPolicy {
	pods := map[string]map[string]string{}
	for _, one := range c.Pods {
		pods[one.Namespace+"/"+one.Name] = one.Labels
	}
	q := p.DeepCopy()
	q.Spec.PodSelector = *named(&q.Spec.PodSelector, pods)
	peers := func(list []net.NetworkPolicyPeer) {
		for i := range list {
			list[i].PodSelector = named(list[i].PodSelector, pods)
			list[i].NamespaceSelector = named(list[i].NamespaceSelector, c.Namespaces)
		}
	}
	for i := range q.Spec.Ingress {
		peers(q.Spec.Ingress[i].From)
	}
	for i := range q.Spec.Egress {
		peers(q.Spec.Egress[i].To)
	}
	return q
}

type party struct {
	peer  matcher.TrafficPeer
	ports []port
}

func parties(c cluster) []party {
	var all []party
	for _, one := range c.Pods {
		inside := &matcher.InternalPeer{
			Namespace:       one.Namespace,
			PodLabels:       map[string]string{"it": one.Namespace + "/" + one.Name},
			NamespaceLabels: map[string]string{"it": one.Namespace},
		}
		all = append(all, party{matcher.TrafficPeer{Internal: inside, IP: one.Address}, one.Ports})
	}
	for _, address := range c.Outside {
		all = append(all, party{matcher.TrafficPeer{IP: address}, nil})
	}
	return all
}

// Bits of every pair of different parties, at least one of them a Pod, for every probe: egress, ingress.
func judge(c cluster, policies []net.NetworkPolicy) (string, string) {
	var list []*net.NetworkPolicy
	for _, p := range policies {
		list = append(list, handed(p, c))
	}
	engine := matcher.BuildNetworkPolicies(false, list)
	var egress, ingress []bool
	all := parties(c)
	for i := range all {
		for j := range all {
			if i == j || (all[i].peer.Internal == nil && all[j].peer.Internal == nil) {
				continue
			}
			for _, one := range probes {
				name := ""
				for _, own := range all[j].ports {
					if own.Protocol == one.Protocol && own.Number == one.Port {
						name = own.Name
					}
				}
				said := engine.IsTrafficAllowed(&matcher.Traffic{
					Source: &all[i].peer, Destination: &all[j].peer,
					ResolvedPort: one.Port, ResolvedPortName: name, Protocol: one.Protocol,
				})
				egress = append(egress, said.Egress.IsAllowed())
				ingress = append(ingress, said.Ingress.IsAllowed())
			}
		}
	}
	return bits(egress), bits(ingress)
}

func bits(list []bool) string {
	bytes := make([]byte, (len(list)+7)/8)
	for i, set := range list {
		if set {
			bytes[i/8] |= 0x80 >> (i % 8)
		}
	}
	return hex.EncodeToString(bytes)
}

// What a policy is, without what it is not.
func slim(p net.NetworkPolicy) any {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		panic(err)
	}
	delete(object, "status")
	delete(object["metadata"].(map[string]any), "creationTimestamp")
	return object
}

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	seed, _ := strconv.ParseUint(os.Args[2], 10, 64)
	r := source{rand.New(rand.NewPCG(seed, 1))}
	line := func(value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		return string(text)
	}
	all := clusters()
	fmt.Printf("{\"engine\":\"github.com/mattfenwick/cyclonus v0.5.6\",\"seed\":%d,\n\"clusters\":%s,\n\"probes\":%s,\n\"worlds\":[\n", seed, line(all), line(probes))
	for at := range count {
		number := at % len(all)
		var policies []net.NetworkPolicy
		var shown []any
		for i := range 1 + r.IntN(3) {
			policies = append(policies, r.policy(i))
			shown = append(shown, slim(policies[i]))
		}
		egress, ingress := judge(all[number], policies)
		end := ","
		if at == count-1 {
			end = ""
		}
		fmt.Printf("%s%s\n", line(map[string]any{"cluster": number, "policies": shown, "egress": egress, "ingress": ingress}), end)
	}
	fmt.Println("]}")
}
