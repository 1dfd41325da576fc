package facts
import ("testing";"fmt")
func TestDump(t *testing.T){
 c,err:=Load(t.Context(),"../../..")
 if err!=nil{t.Fatal(err)}
 m,err:=c.Metrics()
 if err!=nil{t.Fatal(err)}
 for _,k:=range m{fmt.Println(k.Name,k.Type,k.Labels,k.Unit(),k.Package)}
}
