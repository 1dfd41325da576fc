// Package packageserver describes a supervisor that only serves PackageManifests and runs outside the cluster.
package packageserver

import (
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Name is the name of the Deployment.
	Name = "chandlery-packageserver"
	// Service is the name of its Service.
	Service = Name + "-service"
)

// Args returns the arguments of the program that serves at an address, for the Deployment in a namespace.
func Args(kubeconfig, namespace, host string, port int32) []string {
	return []string{
		"run", "--kubeconfig", kubeconfig, "--packagemanifests", "only",
		"--packagemanifests-address", net.JoinHostPort(host, strconv.Itoa(int(port))), "--leader-election-namespace", namespace,
		"--metrics-address", "0", "--health-address", "0",
	}
}

// Objects returns the Deployment, whose pods nothing runs, and the Service, whose endpoint is the program.
func Objects(namespace, host string, port int32) []client.Object {
	return append(Endpoint(namespace, Service, host, port), Deployment(namespace, Name))
}

// Deployment returns a Deployment of supervisors, whose pods nothing runs.
func Deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "packageserver", Image: "chandlery/supervisor"}}},
			},
		},
	}
}

// Endpoint returns a Service and its endpoint, an address outside the cluster.
func Endpoint(namespace, name, host string, port int32) []client.Object {
	const portName = "packages"
	return []client.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: portName, Port: 443, TargetPort: intstr.FromInt32(port)}}},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{host}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
			Ports:       []discoveryv1.EndpointPort{{Name: new(portName), Port: &port, Protocol: new(corev1.ProtocolTCP)}},
		},
	}
}
