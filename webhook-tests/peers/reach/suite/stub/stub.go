// Package stub stands in for the parts of Kubernetes' end-to-end framework that its suite of network policies uses: cases are registered and run one after
// the other on a cluster of maps, on which every Pod runs as soon as it is made.
package stub

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	net "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Words that the suite hands to its framework, and that mean nothing here.
const (
	NetworkPolicy    = "NetworkPolicy"
	SCTPConnectivity = "SCTPConnectivity"
	LevelBaseline    = "baseline"
	LevelPrivileged  = "privileged"
	Agnhost          = "agnhost"
)

// Case is one test of the suite.
type Case struct {
	Name string
	Run  func()
}

// Cases are all of them, in order.
var Cases []Case

// TestContext has what the suite asks for.
var TestContext struct{ ClusterDNSDomain string }

var (
	within []string
	before []func()
)

// Framework is what a test has of its cluster.
type Framework struct {
	SkipNamespaceCreation     bool
	NamespacePodSecurityLevel string
	BaseName                  string
	ClientSet                 *Cluster
}

func NewDefaultFramework(name string) *Framework { return &Framework{BaseName: name} }

func SIGDescribe(name string, arguments ...any) bool {
	describe(name, arguments)
	return true
}

func Context(name string, arguments ...any) { describe(name, arguments) }

func describe(name string, arguments []any) {
	within = append(within, name)
	known := len(before)
	arguments[len(arguments)-1].(func())()
	before = before[:known]
	within = within[:len(within)-1]
}

func BeforeEach(run func()) { before = append(before, run) }

func (f *Framework) It(name string, arguments ...any) {
	run := arguments[len(arguments)-1].(func(context.Context))
	first := slices.Clone(before)
	Cases = append(Cases, Case{
		Name: strings.Join(append(slices.Clone(within), name), ": "),
		Run: func() {
			f.ClientSet = newCluster()
			for _, one := range first {
				one()
			}
			run(context.Background())
		},
	})
}

// DeferCleanup does nothing: every case has a cluster of its own.
func DeferCleanup(...any) {}

func By(string, ...func())               {}
func Logf(string, ...any)                {}
func NodeOSDistroIs(string) bool         { return false }
func SkipIfNodeOSDistroIs(...string)     {}
func GetE2EImage(string) string          { return "agnhost" }
func Failf(format string, values ...any) { fail(fmt.Sprintf(format, values...)) }
func ExpectNoError(err error, _ ...any) {
	if err != nil {
		fail(err.Error())
	}
}

func fail(what string) {
	fmt.Fprintln(os.Stderr, what)
	os.Exit(1)
}

// Cluster holds objects, and answers as a client of it.
type Cluster struct {
	namespaces map[string]*core.Namespace
	pods       map[string]*core.Pod
	policies   map[string]*net.NetworkPolicy
}

func newCluster() *Cluster {
	return &Cluster{map[string]*core.Namespace{}, map[string]*core.Pod{}, map[string]*net.NetworkPolicy{}}
}

func (c *Cluster) CoreV1() *Cluster       { return c }
func (c *Cluster) NetworkingV1() *Cluster { return c }

// CreateNamespace names it as the API server does.
func (c *Cluster) CreateNamespace(name string) *core.Namespace {
	labels := map[string]string{"kubernetes.io/metadata.name": name}
	c.namespaces[name] = &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name, Labels: labels}}
	return c.namespaces[name]
}

func sorted[T any](m map[string]*T) []*T {
	var list []*T
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[key])
	}
	return list
}

// All gives everything there is.
func (c *Cluster) All() ([]*core.Namespace, []*core.Pod, []*net.NetworkPolicy) {
	return sorted(c.namespaces), sorted(c.pods), sorted(c.policies)
}

type Namespaces struct{ c *Cluster }

func (c *Cluster) Namespaces() Namespaces { return Namespaces{c} }

func (n Namespaces) Get(_ context.Context, name string, _ meta.GetOptions) (*core.Namespace, error) {
	return n.c.namespaces[name].DeepCopy(), nil
}

func (n Namespaces) Update(_ context.Context, one *core.Namespace, _ meta.UpdateOptions) (*core.Namespace, error) {
	n.c.namespaces[one.Name] = one.DeepCopy()
	return one, nil
}

type Pods struct {
	c         *Cluster
	namespace string
}

func (c *Cluster) Pods(namespace string) Pods { return Pods{c, namespace} }

func (p Pods) Create(_ context.Context, one *core.Pod, _ meta.CreateOptions) (*core.Pod, error) {
	one = one.DeepCopy()
	address := fmt.Sprintf("10.%d.0.%d", 1+len(p.c.namespaces), 1+len(p.c.pods))
	one.Status = core.PodStatus{Phase: core.PodRunning, PodIP: address, PodIPs: []core.PodIP{{IP: address}}}
	p.c.pods[p.namespace+"/"+one.Name] = one
	return one, nil
}

func (p Pods) Get(_ context.Context, name string, _ meta.GetOptions) (*core.Pod, error) {
	return p.c.pods[p.namespace+"/"+name].DeepCopy(), nil
}

func (p Pods) Update(_ context.Context, one *core.Pod, _ meta.UpdateOptions) (*core.Pod, error) {
	p.c.pods[p.namespace+"/"+one.Name] = one.DeepCopy()
	return one, nil
}

func (p Pods) List(_ context.Context, options meta.ListOptions) (*core.PodList, error) {
	key, value, _ := strings.Cut(options.LabelSelector, "=")
	var list core.PodList
	for _, one := range sorted(p.c.pods) {
		if one.Namespace == p.namespace && one.Labels[key] == value {
			list.Items = append(list.Items, *one)
		}
	}
	return &list, nil
}

type Policies struct {
	c         *Cluster
	namespace string
}

func (c *Cluster) NetworkPolicies(namespace string) Policies { return Policies{c, namespace} }

func (p Policies) Create(_ context.Context, one *net.NetworkPolicy, _ meta.CreateOptions) (*net.NetworkPolicy, error) {
	one = one.DeepCopy()
	if one.Name == "" {
		one.Name = fmt.Sprintf("%s%d", one.GenerateName, len(p.c.policies))
	}
	p.c.policies[p.namespace+"/"+one.Name] = one
	return one, nil
}

func (p Policies) Update(_ context.Context, one *net.NetworkPolicy, _ meta.UpdateOptions) (*net.NetworkPolicy, error) {
	p.c.policies[p.namespace+"/"+one.Name] = one.DeepCopy()
	return one, nil
}

func (p Policies) Delete(_ context.Context, name string, _ meta.DeleteOptions) error {
	delete(p.c.policies, p.namespace+"/"+name)
	return nil
}

func (p Policies) List(context.Context, meta.ListOptions) (*net.NetworkPolicyList, error) {
	var list net.NetworkPolicyList
	for _, one := range sorted(p.c.policies) {
		if one.Namespace == p.namespace {
			list.Items = append(list.Items, *one)
		}
	}
	return &list, nil
}
