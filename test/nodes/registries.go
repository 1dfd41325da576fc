package nodes

import "path"

// registriesDir is the folder of containerd's settings for registries in the folder of a node. RegistriesDir is its path
// for programs on the node.
const (
	registriesDir = "registries"
	RegistriesDir = "/run/node/" + registriesDir
)

// ConfigureRegistries writes files below RegistriesDir of every node, by their paths: HOST:PORT/hosts.toml, or
// _default/hosts.toml for all others. containerd reads them at the next pull.
func ConfigureRegistries(b *Bed, files map[string]string) error {
	for _, m := range b.machines.list[1:] {
		for name, content := range files {
			if err := m.write(path.Join(registriesDir, name), content); err != nil {
				return err
			}
		}
	}
	return nil
}
